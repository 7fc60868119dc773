package local

import (
	"fmt"
	"os"
	"testing"

	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

// holdArg makes the test binary a harness that holds sandboxes, see hold.
const holdArg = "hold-sandboxes"

func TestMain(m *testing.M) {
	if supervisor.Main(os.Args) {
		return
	}
	if len(os.Args) > 1 && os.Args[1] == holdArg {
		fmt.Fprintln(os.Stderr, hold(os.Args[2:])) // it only returns to fail
		os.Exit(1)
	}
	os.Exit(m.Run())
}
