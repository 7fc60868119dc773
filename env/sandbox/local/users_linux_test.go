package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIDRange(t *testing.T) {
	type ids struct {
		First, Slots int
		HostRoot     bool
	}
	for _, c := range []struct {
		name, uidMap string
		want         ids
	}{
		{"whole machine", "         0          0 4294967295\n", ids{firstUser, userSlots, true}},
		{"container with 65536 ids", "         0     100000      65536\n", ids{32768, 32766, false}},
		{"container with root's own ids", "         0          0      65536\n", ids{32768, 32766, true}},
		{"rootless container", "         0       1000          1\n         1     100000      65536\n", ids{32769, 32766, false}},
		{"only one", "         0       1000          1\n", ids{}},
		{"only root", "         0          0          1\n", ids{HostRoot: true}},
		{"none", "", ids{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got ids
			got.First, got.Slots, got.HostRoot = idRange(c.uidMap)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUsers sees that two harnesses never lend the same id at once.
func TestUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root lends users")
	}
	file := filepath.Join(t.TempDir(), "users")
	var lenders [2]*users
	for i := range lenders {
		u, err := openUsers(file)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = u.file.Close() }()
		u.slots, u.next = 6, 0
		lenders[i] = u
	}
	taken := map[int]bool{}
	releases := make([]func() error, 0, 6)
	for i := range 6 {
		id, release, err := lenders[i%2].take()
		if err != nil || taken[id] {
			t.Fatalf("id %d, error %v, taken: %v", id, err, taken)
		}
		taken[id] = true
		releases = append(releases, release)
	}
	if id, _, err := lenders[0].take(); err == nil {
		t.Errorf("a seventh of six ids: %d", id)
	}
	if err := releases[1](); err != nil { // of the other one
		t.Fatal(err)
	}
	if _, _, err := lenders[0].take(); err != nil {
		t.Errorf("an id that was given back cannot be had: %v", err)
	}
}
