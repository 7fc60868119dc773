package terminal

import (
	"path"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent/tool/terminal/syntax"
)

// forkBomb finds a function that starts itself twice, in the background.
func forkBomb(list []syntax.Command) bool {
	for i := range max(0, len(list)-1) {
		a, b := list[i], list[i+1]
		if isCall(a) && isCall(b) && a.In == b.In && (a.After == "|" || a.After == "&") && (a.After == "&" || b.After == "&") {
			return true
		}
	}
	return false
}

// isCall tells whether a function calls itself, without arguments that could
// make it end.
func isCall(c syntax.Command) bool {
	return c.In != "" && len(c.Words) == 1 && c.Words[0].Text == c.In
}

// kills judges a signal by whom it is for: -1 is every process.
func kills(name string, args []syntax.Word) string {
	const why = "it would signal every process"
	if name == "killall5" {
		return why
	}
	switch {
	case len(args) == 0:
		return ""
	case len(args) == 1:
		if args[0].Text == "-1" {
			return why
		}
		return ""
	case slices.Contains([]string{"-s", "-n", "--signal"}, args[0].Text):
		args = args[2:]
	case args[0].Text != "--" && strings.HasPrefix(args[0].Text, "-"):
		args = args[1:]
	}
	if slices.ContainsFunc(args, func(w syntax.Word) bool { return w.Text == "-1" }) {
		return why
	}
	return ""
}

// stops judges what can stop the machine.
func stops(name string, args []syntax.Word) string {
	const why = "it would shut the machine down"
	var operand string
	for _, w := range args {
		if slices.Contains([]string{"--help", "--version", "-c"}, w.Text) {
			return ""
		}
		if operand == "" && !strings.HasPrefix(w.Text, "-") {
			operand = w.Text
		}
	}
	var words []string
	switch name {
	case "init", "telinit":
		words = []string{"0", "6"}
	case "systemctl":
		words = []string{"poweroff", "reboot", "soft-reboot", "halt", "kexec", "exit"}
	default:
		return why
	}
	if slices.Contains(words, operand) {
		return why
	}
	return ""
}

// wipes judges what writes to the disks themselves.
func wipes(name string, args []syntax.Word) string {
	switch {
	case name == "dd":
		for _, w := range args {
			if target, ok := strings.CutPrefix(w.Text, "of="); ok {
				return overwrites(syntax.Word{Text: target})
			}
		}
	case name == "cp" || name == "mv":
		if len(args) > 0 {
			return overwrites(args[len(args)-1])
		}
	case name == "tee" || isFormatter(name):
		for _, w := range args {
			if why := overwrites(w); why != "" {
				return why
			}
		}
	}
	return ""
}

func isFormatter(name string) bool {
	return strings.HasPrefix(name, "mkfs.") || slices.Contains([]string{"mkfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "shred"}, name)
}

// overwrites says what writing to a file would destroy.
func overwrites(w syntax.Word) string {
	name := path.Clean(w.Text)
	if name == "/proc/sysrq-trigger" {
		return "it would give the kernel an order"
	}
	device, ok := strings.CutPrefix(name, "/dev/")
	if !ok {
		return ""
	}
	disks := []string{
		"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "dm-", "mapper/", "disk/", "loop", "ram", "zram", "nbd", "sr", "mem", "kmem", "port",
	}
	if slices.ContainsFunc(disks, func(prefix string) bool { return strings.HasPrefix(device, prefix) }) {
		return "it would overwrite the device " + name
	}
	return ""
}
