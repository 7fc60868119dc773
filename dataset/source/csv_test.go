package source

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCSV(t *testing.T) {
	tests := []struct {
		name string
		file string
		text string
		want []string // input and target of each task
	}{
		{"plain", "t.csv", "input,target\na,b\nc,d\n", []string{"a", "b", "c", "d"}},
		{"mark, line ends of Windows, none at the end", "t", "\xef\xbb\xbfinput,target\r\na,b\r\nc,d", []string{"a", "b", "c", "d"}},
		{"quotes", "t", "\"input\",\"target\"\n\"a, b\",\"say \"\"hi\"\"\"\n\"\",\"x\"\"\"\n", []string{"a, b", `say "hi"`, "", `x"`}},
		{"lines in a field", "t", "input,target\n\"one\r\n\ntwo\",\"\n\"\nc,d\n", []string{"one\r\n\ntwo", "\n", "c", "d"}},
		{"quotes within a field", "t", "input,target\n5\" disk,a \"b\" c\n", []string{`5" disk`, `a "b" c`}},
		{"empty fields", "t", "input,target,x\n,,\na,,\n", []string{"", "", "a", ""}},
		{"blank lines", "t", "\ninput,target\n\n\r\na,b\n\n", []string{"a", "b"}},
		{"blanks around names", "t", " input , target\na, b \n", []string{"a", " b "}},
		{"tabs", "t", "input\ttarget\na,b\tc\n", []string{"a,b", "c"}},
		{"tabs by name", "t.tsv.gz", "input\ttarget\na\tb\n", []string{"a", "b"}},
		{"semicolons", "t", "input;target\n1,5;2\n", []string{"1,5", "2"}},
		{"bars", "t", "input|target\na|b\n", []string{"a", "b"}},
		{"separators within quotes", "t", "\"a,b,c\";input;target\nx;y;z\n", []string{"y", "z"}},
		{"a column of row numbers", "t", ",input,target\n0,a,b\n", []string{"a", "b"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data := []byte(test.text)
			if strings.HasSuffix(test.file, ".gz") {
				data = gzipOf(t, data)
			}
			var got []string
			for _, task := range readAll(t, Options{Path: write(t, test.file, data)}) {
				got = append(got, task.Input, task.Target)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("tasks differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCSVOfOneColumn(t *testing.T) {
	path := write(t, "t.csv", []byte("input\nfirst\n\"second\"\n"))
	got := readAll(t, Options{Path: path, Columns: map[string]string{Target: ""}})
	if len(got) != 2 || got[0].Input != "first" || got[1].Input != "second" {
		t.Errorf("tasks = %+v", got)
	}
}

// Reading goes on behind a bad row, and the lines are counted.
func TestBadRowsOfCSV(t *testing.T) {
	text := "input,target\na,b\nonly\n\"two\nlines\",c,d\n\"x\"y,z\nbad \xff,1\n\"last\none\",e\n"
	path := write(t, "t.csv", []byte(text))
	s, err := Open(Options{Path: path, SkipBadRows: true})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := collect(s.Tasks())
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) != 2 || tasks[1].Input != "last\none" {
		t.Errorf("tasks = %+v", tasks)
	}
	lines := make([]int, 0, len(s.Bad().First))
	for _, bad := range s.Bad().First {
		lines = append(lines, bad.Line)
	}
	if diff := cmp.Diff([]int{3, 4, 6, 7}, lines); diff != "" {
		t.Errorf("lines of bad rows differ (-want +got):\n%s", diff)
	}
}

// What encoding/csv reads, these rows hold too.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "\"a\"\"\",b\r\n\"1\n2\",3\n", "a;b\n1;2", "a\n\"", "a,b\n,\n", "a,b\n1\n2,3\n", "\xef\xbb\xbfa,b\n\"\",x", "a,a\n1,2",
	} {
		f.Add([]byte(seed), byte(','))
		f.Add([]byte(seed), byte(';'))
	}
	f.Fuzz(func(t *testing.T, data []byte, separator byte) {
		if !strings.ContainsRune(",;\t|", rune(separator)) {
			return
		}
		got, err := csvRecords(data, separator)
		ref := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(data), utf8BOM)))
		ref.Comma = rune(separator)
		want, refErr := ref.ReadAll()
		switch {
		case refErr != nil || !validText(data) || strings.Contains(string(data), "\r"):
			return // other rules for broken rows, and none for lone carriage returns
		case err != nil:
			t.Fatalf("%q: %v", data, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("records of %q differ (-want +got):\n%s", data, diff)
		}
	})
}

func validText(data []byte) bool { return strings.ToValidUTF8(string(data), "") == string(data) }

func csvRecords(data []byte, separator byte) ([][]string, error) {
	c := &csvRows{lines: linesOf(data), separator: separator}
	var all [][]string
	for {
		err := c.record()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, c.fields())
	}
}

func linesOf(data []byte) lines { return lines{r: bufio.NewReaderSize(bytes.NewReader(data), 16)} }
