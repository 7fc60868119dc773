package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// firstUser begins a range that no distribution or container tool gives out
	// (they end below 0x70000000), where user namespaces leave us the choice.
	firstUser = 0x70000000
	userSlots = 1 << 16
	fewest    = 1 << 10 // with fewer ids than this, dropping to one is not offered
)

// users lends each sandbox a user id of its own, so that limits per user are
// limits per sandbox and no sandbox can touch another. Harnesses with one state
// directory share the ids by locks on single bytes of a file, which end with
// their holder.
type users struct {
	file  *os.File
	first int
	slots int

	mu   sync.Mutex
	held map[int]bool // locks do not tell one holder's apart
	next int          // begins anywhere: others may have state directories of their own
}

// openUsers returns nil if the harness has no need to drop its rights: it is no
// root, or only root of a namespace too small to have other users.
func openUsers(file string) (*users, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // none is needed
	}
	uidMap, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return nil, fmt.Errorf("looking for user ids: %w", err)
	}
	first, slots, hostRoot := idRange(string(uidMap))
	if slots < fewest {
		if hostRoot {
			// Bubblewrap leaves root of the host the keys to it, among others
			// /proc/sys/kernel/core_pattern, whatever rights it drops inside.
			return nil, errors.New("sandboxes are not safe as root without other user ids to drop to")
		}
		return nil, nil //nolint:nilnil // none can be had, and this root is nobody outside
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &users{file: f, first: first, slots: slots, held: map[int]bool{}, next: rand.IntN(slots)}, nil
}

// idRange chooses ids from the text of a uid_map, and tells whether id 0 is
// that of the whole machine.
func idRange(uidMap string) (first, slots int, hostRoot bool) {
	for line := range strings.Lines(uidMap) {
		var inside, outside, count int
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err != nil {
			continue
		}
		hostRoot = hostRoot || inside == 0 && outside == 0
		if inside <= firstUser && firstUser+userSlots <= inside+count {
			return firstUser, userSlots, hostRoot
		}
		// The upper half of a small range: people and services come first.
		if half := count / 2; inside < 1<<16 && half > slots {
			first, slots = inside+half, min(half-2, userSlots) // not 65534, nobody
		}
	}
	return first, slots, hostRoot
}

// take lends an id that nobody else holds until release is called.
func (u *users) take() (id int, release func() error, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range u.slots {
		slot := u.next
		u.next = (u.next + 1) % u.slots
		if u.held[slot] || u.lock(slot, unix.F_WRLCK) != nil {
			continue
		}
		u.held[slot] = true
		return u.first + slot, func() error { return u.giveBack(slot) }, nil
	}
	return 0, nil, fmt.Errorf("all %d user ids for sandboxes are taken", u.slots)
}

func (u *users) giveBack(slot int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.held, slot)
	return u.lock(slot, unix.F_UNLCK)
}

func (u *users) lock(slot int, kind int16) error {
	return unix.FcntlFlock(u.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: int64(slot), Len: 1})
}
