package hub

import (
	"context"
	"crypto/sha1" //nolint:gosec // git names small files by it
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
)

// parallel is how many files are fetched at once.
const parallel = 4

// key names a file by its content.
func (e entry) key() string {
	if e.SHA256 != "" {
		return e.SHA256
	}
	return "git-" + e.OID
}

func (c *Client) blobPath(e entry) string {
	return filepath.Join(c.opts.Cache, "hub", "files", e.key())
}

// has tells whether a file is in the cache, whole.
func (c *Client) has(e entry) bool {
	info, err := os.Stat(c.blobPath(e))
	return err == nil && info.Size() == e.Size
}

// download fetches the files that the cache lacks.
func (c *Client) download(ctx context.Context, dataset, commit string, files []entry) error {
	var lacking []entry
	size := int64(0)
	for _, e := range files {
		if !isKey(e.key()) {
			return fmt.Errorf("the hub names no checksum for %s", e.Path)
		}
		if !c.has(e) {
			lacking = append(lacking, e)
			size += e.Size
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	if c.opts.Offline {
		return fmt.Errorf("%s is not in the cache, and the hub is not asked, as HF_HUB_OFFLINE is set", lacking[0].Path)
	}
	c.opts.Log.Info("downloading a dataset", slog.String("dataset", dataset), slog.String("commit", commit),
		slog.Int("files", len(lacking)), slog.Int64("bytes", size))
	if err := os.MkdirAll(filepath.Dir(c.blobPath(lacking[0])), 0o755); err != nil { //nolint:gosec // a cache may be shared
		return fmt.Errorf("making the cache: %w; TALARIA_CACHE may name another folder", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, e := range lacking {
		address := c.opts.Endpoint + "/datasets/" + dataset + "/resolve/" + commit + "/" + escape(e.Path)
		group.Go(func() error {
			if err := c.fetchFile(ctx, address, e); err != nil {
				return fmt.Errorf("downloading %s: %w", e.Path, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// isKey keeps what the hub says from naming files elsewhere.
func isKey(key string) bool {
	digits := strings.TrimPrefix(key, "git-")
	_, err := hex.DecodeString(digits)
	return err == nil && len(digits) >= 40
}

func escape(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// lockPoll is how often a process looks whether another has fetched the file.
const lockPoll = 100 * time.Millisecond

// fetchFile fetches a file unless another process does or did: one does the
// work, the others wait. What was fetched before a crash is kept and gone on
// with.
func (c *Client) fetchFile(ctx context.Context, address string, e entry) error {
	final := c.blobPath(e)
	lock := flock.New(final + ".lock")
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return fmt.Errorf("locking the cache: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	if c.has(e) {
		return nil
	}
	partial := final + ".partial"
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // a cache may be shared
	if err != nil {
		return fmt.Errorf("writing the cache: %w", err)
	}
	err = c.transferAll(ctx, address, e, f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(partial, final); err != nil {
		return fmt.Errorf("writing the cache: %w", err)
	}
	_ = os.Remove(final + ".lock") // who waits for it looks for the file first
	return nil
}

// transferAll transfers for as long as it gets further.
func (c *Client) transferAll(ctx context.Context, address string, e entry, f *os.File) error {
	for {
		before, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		err = c.retry(ctx, func() error { return c.transfer(ctx, address, e, f) })
		if _, ok := errors.AsType[*unreachableError](err); !ok {
			return err
		}
		if after, seekErr := f.Seek(0, io.SeekEnd); seekErr != nil || after <= before {
			return err
		}
	}
}

// transfer fetches what f lacks, and verifies the whole.
func (c *Client) transfer(ctx context.Context, address string, e entry, f *os.File) error {
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return backoff.Permanent(err)
	}
	if have > e.Size {
		have = 0
	}
	if have < e.Size || e.Size == 0 {
		if err := c.append(ctx, address, e.Size, have, f); err != nil {
			return err
		}
	}
	if err := verify(f, e); err != nil {
		// Nothing of it can be trusted: the next try begins anew.
		return errors.Join(err, f.Truncate(0))
	}
	return nil
}

// append writes what the server sends behind the first have bytes.
func (c *Client) append(ctx context.Context, address string, size, have int64, f *os.File) error {
	resp, err := c.do(ctx, address, have)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPartialContent {
		have = 0
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return backoff.Permanent(err)
	}
	if err := f.Truncate(have); err != nil {
		return backoff.Permanent(err)
	}
	// One byte more than promised is enough to know.
	_, err = io.Copy(writer{f}, io.LimitReader(resp.Body, size-have+1))
	return err
}

// writer makes errors of the disk final.
type writer struct{ f *os.File }

func (w writer) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	if err != nil {
		err = backoff.Permanent(fmt.Errorf("writing the cache: %w; TALARIA_CACHE may name another folder", err))
	}
	return n, err
}

// verify compares size and checksum.
func verify(f *os.File, e entry) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var sum hash.Hash
	want := e.SHA256
	if want != "" {
		sum = sha256.New()
	} else {
		want, sum = e.OID, sha1.New()                  //nolint:gosec // as git does
		_, _ = fmt.Fprintf(sum, "blob %d\x00", e.Size) // a hash takes everything
	}
	n, err := io.Copy(sum, f)
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return err
	case n != e.Size:
		return &damagedError{fmt.Sprintf("it came with %d bytes and the hub lists %d", n, e.Size)}
	case got != want:
		return &damagedError{fmt.Sprintf("it came with the checksum %s and the hub lists %s", got, want)}
	}
	return nil
}
