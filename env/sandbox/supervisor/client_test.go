package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox"
)

func FuzzReadFrame(f *testing.F) {
	var seed bytes.Buffer
	w := &frameWriter{to: &seed}
	if err := w.writeJSON(frameCall, 7, request{Op: opKill}); err != nil {
		f.Fatal(err)
	}
	f.Add(seed.Bytes())
	f.Add([]byte("D\x00\x00\x00\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readFrame(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := (&frameWriter{to: &again}).write(got); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, again.Bytes()) {
			t.Errorf("%q was read as %+v", data, got)
		}
	})
}

// peer answers a client as the test says.
func peer(t *testing.T, serve func(r *bufio.Reader, w *frameWriter)) *Client {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serve(bufio.NewReader(theirs), &frameWriter{to: theirs})
		_, _ = io.Copy(io.Discard, theirs)
	}()
	c := NewClient(ours, ours)
	t.Cleanup(func() {
		_ = ours.Close()
		_ = theirs.Close()
		<-ended
		<-c.Gone()
	})
	return c
}

// readCall reads one whole call.
func readCall(t *testing.T, r *bufio.Reader) (id uint32, req request, body []byte) {
	t.Helper()
	for {
		f, err := readFrame(r)
		if err != nil {
			t.Errorf("reading a call: %v", err)
			return id, req, body
		}
		switch f.kind {
		case frameCall:
			if err := json.Unmarshal(f.payload, &req); err != nil {
				t.Error(err)
			}
		case frameData:
			body = append(body, f.payload...)
		case frameEnd:
			return f.id, req, body
		}
	}
}

func send(t *testing.T, w *frameWriter, kind byte, id uint32, payload string) {
	t.Helper()
	if err := w.write(frame{kind: kind, id: id, payload: []byte(payload)}); err != nil {
		t.Errorf("answering: %v", err)
	}
}

func TestClientHostilePeer(t *testing.T) {
	for _, c := range []struct {
		name string
		says []frame // of the id 0: the call's own
		raw  string
		want string
	}{
		{
			name: "more output than asked for",
			says: []frame{{kind: frameData, payload: make([]byte, 11)}, {kind: frameResult, payload: []byte(`{"value":{}}`)}},
			want: "more than it was asked for",
		},
		{name: "message too long", raw: "D\x00\x00\x00\x01\xff\xff\xff\xff", want: "too long"},
		{name: "unknown message", says: []frame{{kind: 'Z'}}, want: "unexpected message"},
		{name: "reply that is no JSON", says: []frame{{kind: frameResult, payload: []byte("{")}}, want: "decoding a reply"},
		{name: "value of another type", says: []frame{{kind: frameResult, payload: []byte(`{"value":[1]}`)}}, want: "cannot unmarshal"},
		{name: "an error", says: []frame{{kind: frameResult, payload: []byte(`{"error":{"text":"no shell"}}`)}}, want: "no shell"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := peer(t, func(r *bufio.Reader, w *frameWriter) {
				id, _, _ := readCall(t, r)
				send(t, w, frameData, id+1, "nobody asked for this")
				for _, f := range c.says {
					send(t, w, f.kind, id, string(f.payload))
				}
				_, _ = io.WriteString(w.to, c.raw)
			})
			_, err := client.Exec(t.Context(), sandbox.Command{Script: "true", MaxOutput: 10})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestClientGapBeyondOutput(t *testing.T) {
	client := peer(t, func(r *bufio.Reader, w *frameWriter) {
		id, _, _ := readCall(t, r)
		send(t, w, frameResult, id, `{"value":{"gap":1000}}`)
	})
	got, err := client.Exec(t.Context(), sandbox.Command{Script: "true"})
	if err != nil || got.Gap != 0 {
		t.Errorf("gap %d, error %v", got.Gap, err)
	}
}

// TestClientErrors sees that a file's error comes over as what it was.
func TestClientErrors(t *testing.T) {
	sent := &fs.PathError{Op: "open", Path: "/x", Err: syscall.ENOENT}
	client := peer(t, func(r *bufio.Reader, w *frameWriter) {
		id, req, body := readCall(t, r)
		if req.Op != opWrite || string(body) != "content" {
			t.Errorf("the peer got %+v with %q", req, body)
		}
		if err := w.writeJSON(frameResult, id, reply{Error: toWire(errors.Join(sent, nil))}); err != nil {
			t.Error(err)
		}
	})
	err := client.WriteFile(t.Context(), "/x", []byte("content"), 0)
	got, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(*sent, *got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// TestClientPeerDies sees that no call waits for one that has gone.
func TestClientPeerDies(t *testing.T) {
	ours, theirs := net.Pipe()
	client := NewClient(ours, ours)
	failed := make(chan error, 1)
	go func() { failed <- client.Kill(t.Context()) }()
	if _, err := readFrame(bufio.NewReader(theirs)); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	if err := <-failed; err == nil {
		t.Error("a call to nobody succeeded")
	}
	<-client.Gone()
	if err := client.Kill(t.Context()); err == nil || !strings.Contains(err.Error(), "the sandbox is gone") {
		t.Errorf("the next call returned %v", err)
	}
}

// TestClientSilentPeer sees that a caller is not kept for ever by a peer that
// neither answers nor goes, whether it listens or not.
func TestClientSilentPeer(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			heard := make(chan struct{})
			client := peer(t, func(*bufio.Reader, *frameWriter) {
				if deaf {
					<-heard
				}
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("enough")
			go cancel(why)
			err := client.WriteFile(ctx, "f", make([]byte, 1<<20), 0)
			if !errors.Is(err, why) {
				t.Errorf("deaf=%v: error %v", deaf, err)
			}
			close(heard)
		})
	}
}
