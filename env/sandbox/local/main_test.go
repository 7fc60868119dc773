package local

import (
	"os"
	"testing"

	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

func TestMain(m *testing.M) {
	if supervisor.Main(os.Args) {
		return
	}
	os.Exit(m.Run())
}
