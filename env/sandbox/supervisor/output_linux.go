package supervisor

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// pipeMax is as much as a pipe can hold: who could write to it before a command
// ended has written no more than that since we last read.
const pipeMax = 1 << 20

// output reads what a command writes, from a pipe that the command's
// background children may hold open after it.
type output struct {
	pipe *os.File
	clip *clip
	done chan error // one, from the reading goroutine; nil at the end of the stream
}

func listen(fd, keep int) *output {
	_ = syscall.SetNonblock(fd, true)
	o := &output{
		pipe: os.NewFile(uintptr(fd), "output"),
		clip: &clip{max: keep},
		done: make(chan error, 1),
	}
	go func() {
		_, err := io.CopyBuffer(o.clip, struct{ io.Reader }{o.pipe}, make([]byte, frameChunk))
		o.done <- err
	}()
	return o
}

// stop ends listening after the command has: it takes what is in the pipe now
// and does not wait for more. Background children that still write do so into
// the void, not into a broken pipe.
func (o *output) stop() *clip {
	// The deadline wakes the goroutine, unless it is at the end already.
	_ = o.pipe.SetReadDeadline(time.Now())
	if err := <-o.done; err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = o.pipe.Close()
		return o.clip
	}
	_ = o.pipe.SetReadDeadline(time.Time{})
	if ended := o.drain(); ended {
		_ = o.pipe.Close()
		return o.clip
	}
	go func() {
		_, _ = io.Copy(io.Discard, o.pipe)
		_ = o.pipe.Close()
	}()
	return o.clip
}

// drain takes what is in the pipe, and tells whether nobody holds it any more.
func (o *output) drain() (ended bool) {
	raw, err := o.pipe.SyscallConn()
	if err != nil {
		return true
	}
	piece := make([]byte, frameChunk)
	_ = raw.Read(func(fd uintptr) bool {
		for taken := 0; taken < pipeMax; {
			n, err := syscall.Read(int(fd), piece)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if n <= 0 {
				ended = err == nil
				break
			}
			taken += n
			_, _ = o.clip.Write(piece[:n])
		}
		return true
	})
	return ended
}
