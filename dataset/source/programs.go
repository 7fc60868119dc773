package source

import (
	"os"
	"path/filepath"
)

// missingProgram tells which of the programs this machine lacks; "" if it has
// all.
func missingProgram(names []string) string {
	for _, name := range names {
		if !hasProgram(name) {
			return "it needs the program " + name + ", which this machine does not have where sandboxes look for it"
		}
	}
	return ""
}

// hasProgram looks where the commands of a sandbox do, whatever the user's own
// PATH is: what lies in somebody's home is not to be seen from a sandbox.
func hasProgram(name string) bool {
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o001 != 0 {
			return true
		}
	}
	return false
}
