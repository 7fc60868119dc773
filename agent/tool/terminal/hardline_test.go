package terminal

import (
	"strings"
	"testing"

	"github.com/talaria-run/talaria/env/sandbox"
)

// harmful are commands that must not run, with a part of what is said of them.
func harmful() map[string]string {
	const (
		all  = "the whole file system"
		home = "the home directory"
		bomb = "fork bomb"
		kill = "every process"
		down = "shut the machine down"
		disk = "overwrite the device"
	)
	return map[string]string{
		"rm -rf /":                                  all,
		"rm -rf //":                                 all,
		"rm -rf /.":                                 all,
		"rm -rf /..":                                all,
		"rm -rf /tmp/..":                            all,
		"rm -rf /*":                                 all,
		"rm -rf /.*":                                all,
		"rm -fr /":                                  all,
		"rm -r -f /":                                all,
		"rm / -R":                                   all,
		"rm --recursive --force /":                  all,
		"rm --recurs /":                             all,
		"rm -rf --no-preserve-root /":               all,
		"rm -rf -- /":                               all,
		"rm -rf ./build /":                          all,
		"rm -rf / tmp/build":                        all,
		"sudo rm -rf /":                             all,
		"sudo -u root -- /bin/rm -rf /":             all,
		"/usr/bin/rm -rf /":                         all,
		"nohup timeout 5 rm -rf / &":                all,
		"env A=1 rm -rf /":                          all,
		"busybox rm -rf /":                          all,
		"command rm -rf /":                          all,
		"cd /tmp; rm -rf /":                         all,
		"true && rm -rf / || true":                  all,
		"if true; then rm -rf /; fi":                all,
		"for d in /tmp /; do rm -rf $d; done":       all,
		"(rm -rf /)":                                all,
		"{ rm -rf /; }":                             all,
		"f() { rm -rf /; }; f":                      all,
		"echo $(rm -rf /)":                          all,
		"echo \"`rm -rf /`\"":                       all,
		"cat <(rm -rf /)":                           all,
		"A=$(rm -rf /)":                             all,
		"r\\m -r''f \"/\"":                          all,
		"rm${IFS}-rf${IFS}/":                        all,
		"$'\\x72m' -rf /":                           all,
		"X=rm; Y=/; $X -rf $Y":                      all,
		"{rm,-rf,/}":                                all,
		"rm \\\n-rf \\\n/":                          all,
		"bash -c 'rm -rf /'":                        all,
		"sh -ec \"rm -rf /\"":                       all,
		"bash -o pipefail -c 'rm -rf /'":            all,
		"sudo bash -c 'bash -c \"rm -rf /\"'":       all,
		"eval 'rm -rf' /":                           all,
		"trap 'rm -rf /' EXIT":                      all,
		"su root -c 'rm -rf /'":                     all,
		"echo 'rm -rf /' | sh":                      all,
		"printf 'rm -rf /\\n' | sudo bash -s":       all,
		"bash <<< 'rm -rf /'":                       all,
		"bash <<'EOF'\nrm -rf /\nEOF":               all,
		"cat <<EOF | sh\nrm -rf /\nEOF":             all,
		"cat > f <<EOF\n$(rm -rf /)\nEOF":           all,
		"echo / | xargs rm -rf":                     all,
		"cd / && rm -rf *":                          all,
		"cd /; rm -rf .":                            all,
		"cd /tmp/x; rm -rf ../..":                   all,
		"(cd / && rm -rf ./*)":                      all,
		"find / -delete":                            all,
		"find / -type f -delete":                    all,
		"find / -mindepth 1 -exec rm -rf {} +":      all,
		"find . -name x -exec sh -c 'rm -rf /' \\;": all,
		"rm -rf ~":                                  home,
		"rm -rf ~/":                                 home,
		"rm -rf ~/*":                                home,
		"rm -rf $HOME":                              home,
		"rm -rf \"${HOME}\"/*":                      home,
		"rm -rf ~root":                              home,
		"cd; rm -rf *":                              home,
		"cd ~/x; rm -rf ..":                         home,
		"rm -rf /etc":                               "/etc",
		"rm -rf /etc/":                              "/etc",
		"rm -rf /etc/*":                             "/etc",
		"rm -rf /usr/bin":                           "/usr/bin",
		"rm -rf /{bin,opt}":                         "/bin",
		"rm -rf /us*":                               "/usr",
		"rm -rf /???":                               "/bin",
		"rm -rf /home/*":                            "/home",
		"rm -rf /var/log/..":                        "/var",
		"find /etc -delete":                         "/etc",
		":(){ :|:& };:":                             bomb,
		":() { : | : & } ; :":                       bomb,
		"bomb() { bomb | bomb & }; bomb":            bomb,
		"function b { b & b; }; b":                  bomb,
		"f() ( f|f& )\nf":                           bomb,
		"bash -c ':(){ :|:& };:'":                   bomb,
		"kill -9 -1":                                kill,
		"kill -1":                                   kill,
		"kill -- -1":                                kill,
		"kill -s KILL -1":                           kill,
		"kill -TERM -- 12 -1":                       kill,
		"sudo kill -KILL -1":                        kill,
		"killall5 -9":                               kill,
		"shutdown -h now":                           down,
		"sudo /sbin/reboot":                         down,
		"halt":                                      down,
		"poweroff -f":                               down,
		"init 0":                                    down,
		"telinit 6":                                 down,
		"systemctl --force reboot":                  down,
		"sleep 5 && shutdown now":                   down,
		"echo b > /proc/sysrq-trigger":              "order",
		"mkfs.ext4 /dev/sda1":                       disk,
		"mkfs -t ext4 /dev/nvme0n1":                 disk,
		"dd if=/dev/zero of=/dev/sda bs=1M":         disk,
		"dd of=/dev/../dev/vda":                     disk,
		"cat x > /dev/sda":                          disk,
		"echo x >/dev/mapper/root":                  disk,
		"cat x | sudo tee /dev/sdb":                 disk,
		"cp disk.img /dev/sdb":                      disk,
		"shred /dev/sda":                            disk,
		"while true; do echo x; done > /dev/mem":    disk,
		"wipefs -a /dev/sda":                        disk,
		"python3 -c 'print(1)'; rm -rf /":           all,
		"echo \"it's fine\"; rm -rf /":              all,
		"echo it\\'s; rm -rf /":                     all,
		"case x in y) rm -rf /;; esac":              all,
		"[[ -d / ]] && rm -rf /":                    all,
		"echo a # b\nrm -rf /":                      all,
		"cat <<EOF\ntext\nEOF\nrm -rf /":            all,
		"rm -rf / &":                                all,
		"time rm -rf /":                             all,
		"! rm -rf /":                                all,
		"rm -rf / 2>/dev/null":                      all,
		">/dev/null rm -rf /":                       all,
		"coproc rm -rf /":                           all,
		"exec rm -rf /":                             all,
		"A=(1 2); rm -rf /":                         all,
		"x=$((1+2)); rm -rf /":                      all,
		"${X:-rm} -rf /":                            all,
	}
}

func TestHarmfulIsRefused(t *testing.T) {
	for command, want := range harmful() {
		if got := refusal(command, ""); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q in it", command, got, want)
		}
	}
}

// TestLookAlikesRun has commands that look like harmful ones and are not.
func TestLookAlikesRun(t *testing.T) {
	for _, command := range []string{
		"",
		"ls /",
		"rm -rf ./build",
		"rm -rf build dist/ *.o",
		"rm -rf *",
		"rm -rf .",
		"rm -rf ..",
		"rm -rf /tmp/*",
		"rm -rf /tmp/x /workspace/build",
		"rm -rf /workspace",
		"rm -rf /var/lib/apt/lists/*",
		"rm -rf /var/tmp/x",
		"rm -rf /usr/local/foo",
		"rm -rf /home/user/project/build",
		"rm -rf ~/.cache",
		"rm -rf $HOME/tmp",
		"rm -rf \"$BUILD_DIR\"",
		"rm -rf \"$TMP\"/*",
		"rm -rf '~'",
		"rm -rf ./~",
		"rm -rf '/*'",
		"rm -rf /etc2 /binary",
		"rm -f /etc/motd",
		"rm /",
		"rm -f /*",
		"rmdir /etc",
		"echo rm -rf /",
		`echo "rm -rf /"`,
		`echo 'rm -rf /' > cleanup.sh`,
		"printf '%s\\n' 'rm -rf /' | tee note.txt",
		"echo 'rm -rf /' | cat",
		"cat > f.sh <<'EOF'\nrm -rf /\nEOF",
		"cat <<EOF\nrm -rf / and :(){ :|:& };: and kill -9 -1\nEOF",
		"git commit -m 'never rm -rf / again'",
		"git commit -m \"shutdown; reboot\"",
		"grep -rn 'rm -rf /' .",
		"grep -c reboot /var/log/syslog",
		"# rm -rf /",
		"ls # ; rm -rf /",
		"man shutdown",
		"which reboot halt",
		"command -v shutdown",
		"shutdown --help",
		"shutdown -c",
		"./reboot",
		"./bin/shutdown now",
		"python3 manage.py shutdown",
		"reboot() { echo no; }",
		"case $1 in start) a;; reboot) b;; shutdown|halt) c;; esac",
		"declare -a COMMANDS=(reboot shutdown halt)",
		"COMMANDS=(reboot shutdown)",
		"[[ $x == reboot || $x == (halt|poweroff) ]]",
		"systemctl status reboot.target",
		"systemctl restart nginx",
		"npm init -y",
		"git init 0",
		"init 3",
		"kill 1234",
		"kill -9 1234",
		"kill -1 1234",
		"kill -9 -1234",
		"kill -l",
		"kill $(pgrep -f server)",
		"kill -0 \"$PID\" && echo -1",
		"pkill -1 nginx",
		"echo kill -9 -1",
		"mkfs.ext4 disk.img",
		"mkfs --help",
		"dd if=/dev/zero of=disk.img bs=1M count=1",
		"dd if=/dev/sda of=/dev/null count=1",
		"dd if=/dev/urandom of=/dev/stdout count=1",
		"echo x > /dev/null 2>&1",
		"echo x > /dev/stderr",
		"echo x | tee /dev/tty",
		"exec 3<>/dev/tcp/localhost/80",
		"cat /dev/sda",
		"cp /dev/null x",
		"shred -u secret.txt",
		"f() { echo x | f2 & }; f",
		"work() { sleep 1; }; work & work & wait",
		"sort() { sort left & sort right & wait; }",
		"echo ':(){ :|:& };:'",
		"a | b & c",
		"find . -delete",
		"find . -name '*.pyc' -delete",
		"find / -name '*.pyc' -delete",
		"find / -name x -exec rm {} ;",
		"find /tmp/x -exec rm -rf {} +",
		"find / -type f",
		"find . -type f -exec grep -l 'rm -rf /' {} +",
		"find . | xargs rm -rf",
		"echo build | xargs rm -rf",
		"(cd / && ls); rm -rf *",
		"echo $(cd /; pwd); rm -rf *",
		"f() { cd /; }; rm -rf *",
		"cd /; cd -; rm -rf *",
		"cd /; cd \"$W\"; rm -rf *",
		"cd /tmp && rm -rf *",
		"pushd /; popd; rm -rf x/*",
		"bash build.sh",
		"bash -c 'echo \"rm -rf /\"'",
		"bash script.sh <<< 'rm -rf /'",
		"ssh host 'rm -rf /'",
		"alias r='rm -rf /'",
		"export CLEAN='rm -rf /'",
		"X='rm -rf /'; echo \"$X\"",
		"python3 -c \"print('rm -rf /')\"",
		"awk '/rm -rf \\//{print}' f",
		"sed -i 's|rm -rf /|true|' f",
		"test -e / && echo yes",
		"for d in /; do ls $d; done",
		"rm -rf \"${DIR:?}/\"",
		"rm -rf /$UNKNOWN",
		"ｒｍ -rf /",
		"sudo",
		"sudo -v",
		"timeout 5",
		"kill",
		"rm",
		"find",
		"bash",
		"eval",
		"trap",
	} {
		if got := refusal(command, ""); got != "" {
			t.Errorf("%q is refused: %s", command, got)
		}
	}
}

func TestRefusalKnowsTheDirectory(t *testing.T) {
	tests := []struct {
		workdir string
		want    bool
	}{
		{"/", true}, {"/etc", true}, {"/workspace", false}, {"", false}, {"sub", false}, {"/workspace/..", true},
	}
	for _, tt := range tests {
		if got := refusal("rm -rf *", tt.workdir) != ""; got != tt.want {
			t.Errorf("in %q: refused %v, want %v", tt.workdir, got, tt.want)
		}
	}
}

// TestScriptsWithinScripts wants an end though each script runs many others.
func TestScriptsWithinScripts(t *testing.T) {
	command := "true"
	for range 6 {
		command = strings.Repeat("eval "+sandbox.Quote(command)+";", 3)
	}
	if got := refusal(command, ""); got != "" {
		t.Errorf("refused: %s", got)
	}
}

// FuzzRefusal wants any text to be harmless where it is only text, and a harmful
// command to be seen wherever it stands.
func FuzzRefusal(f *testing.F) {
	for command := range harmful() {
		f.Add(command)
	}
	f.Add("case x in")
	f.Add("a <<E")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") {
			return
		}
		refusal(text, "/")
		quoted := sandbox.Quote(text)
		for _, command := range []string{"echo " + quoted, "X=" + quoted, "grep -e " + quoted + " f && echo " + quoted, "# " + strings.ReplaceAll(text, "\n", " ")} {
			if got := refusal(command, "/"); got != "" {
				t.Errorf("%q is refused: %s", command, got)
			}
		}
		for _, command := range []string{"echo " + quoted + "; rm -rf /", "rm -rf /; " + text, "echo \"$(rm -rf /)\" " + quoted, "bash -c " + sandbox.Quote("echo "+quoted+"\nrm -rf /")} {
			if refusal(command, "") == "" {
				t.Errorf("%q is not refused", command)
			}
		}
	})
}
