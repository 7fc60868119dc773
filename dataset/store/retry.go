package store

import (
	"fmt"
	"log/slog"
	"time"
)

// diskRetryEvery is how long to wait between tries while the disk is full.
const diskRetryEvery = 5 * time.Second

// insist calls try until it succeeds. While the disk is full it waits for
// space, up to wait in all; after another error it tries once more.
func insist(log *slog.Logger, wait time.Duration, what string, try func() error) error {
	var deadline time.Time
	again := true
	for {
		err := try()
		if err == nil {
			if !deadline.IsZero() {
				log.Info("space on the disk again", slog.String("what", what))
			}
			return nil
		}
		if !isDiskFull(err) {
			if !again {
				return err
			}
			again = false
			log.Warn("writing failed, trying once more", slog.String("what", what), slog.Any("error", err))
			continue
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(wait)
			log.Warn("disk full, waiting for space", slog.String("what", what), slog.Duration("at_most", wait))
		}
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("waiting %s for space on the disk: %w", wait, err)
		}
		<-time.NewTimer(min(left, diskRetryEvery)).C
	}
}
