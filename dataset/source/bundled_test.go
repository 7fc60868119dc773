package source

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Every answer of the quickstart tasks is worked out again here, from the
// question's numbers and words.
func TestQuickstartAnswers(t *testing.T) {
	got := map[string]string{}
	kinds := map[string]int{}
	for _, task := range readAll(t, Options{
		Path: "bundled:quickstart", Columns: map[string]string{ID: "id", Input: "question", Target: "answer"}, Keep: []string{"kind"},
	}) {
		kind, _ := task.Keep["kind"].(string)
		kinds[kind]++
		if task.ID != fmt.Sprintf("%s-%02d", kind, kinds[kind]) || task.Occurrence != 0 {
			t.Errorf("task %s of kind %s", task.ID, kind)
		}
		if task.Input == "" || task.Input != strings.TrimSpace(task.Input) || task.Target != strings.TrimSpace(task.Target) {
			t.Errorf("task %s: blanks around %q or %q", task.ID, task.Input, task.Target)
		}
		got[task.Input] = task.Target
	}
	want := map[string]string{}
	addWords(want)
	addNumbers(want)
	addDates(want)
	addUnits(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers differ (-worked out +in the file):\n%s", diff)
	}
	if len(got) < 36 || len(kinds) != 4 {
		t.Errorf("%d tasks of %d kinds, want at least 36 of 4", len(got), len(kinds))
	}
}

func addWords(want map[string]string) {
	letters := func(s string) []string { return strings.Split(s, "") }
	lantern := letters("lantern")
	slices.Reverse(lantern)
	planet := letters("planet")
	slices.Sort(planet)
	longest, initials := 0, []byte(nil)
	for w := range strings.FieldsSeq("The gardener planted seventeen sunflowers") {
		longest = max(longest, len(w))
	}
	for w := range strings.FieldsSeq("Cold oceans move patiently around small shores") {
		initials = append(initials, strings.ToLower(w)[0])
	}
	shift := func(s string, n rune) string { return strings.Map(func(r rune) rune { return r + n }, s) }

	want[`Write the word "lantern" backwards.`] = strings.Join(lantern, "")
	want[`How many times does the letter s occur in the word "possessions"?`] = strconv.Itoa(strings.Count("possessions", "s"))
	want[`Which of these words comes first in alphabetical order: marble, mango, marigold, maple?`] = slices.Min([]string{"marble", "mango", "marigold", "maple"})
	want[`Take the first letter of each word and write them as one lower-case word: Cold oceans move patiently around small shores.`] = string(initials)
	want[`Remove every vowel (a, e, i, o, u) from the word "umbrella". Which letters are left, in order?`] = strings.NewReplacer("a", "", "e", "", "i", "", "o", "", "u", "").Replace("umbrella")
	want[`How many letters has the longest word of this sentence: The gardener planted seventeen sunflowers.`] = strconv.Itoa(longest)
	want[`Which letter of the English alphabet stands five places after k?`] = shift("k", 5)
	want[`In the word "avocado", replace every a with o and every o with a, at the same time. What is the result?`] = strings.NewReplacer("a", "o", "o", "a").Replace("avocado")
	want[`Sort the letters of the word "planet" alphabetically and write them as one word.`] = strings.Join(planet, "")
	want[`Replace each letter of the word "hello" with the next letter of the alphabet. What is the result?`] = shift("hello", 1)
}

func addNumbers(want map[string]string) {
	sum := 0
	for i := range 251 {
		sum += i
	}
	for question, answer := range map[string]int{
		"What is 48271 * 396?":                                         48271 * 396,
		"What is 9876543 + 1234567 - 345678?":                          9876543 + 1234567 - 345678,
		"What is the remainder when 1000003 is divided by 97?":         1000003 % 97,
		"What is (137 + 268) * (514 - 389)?":                           (137 + 268) * (514 - 389),
		"What is 2 to the power of 31?":                                1 << 31,
		"What is 8192 / 64 + 77?":                                      8192/64 + 77,
		"A ticket costs 37 coins. How many coins do 148 tickets cost?": 37 * 148,
		"What is the sum of the whole numbers from 1 to 250?":          sum,
		"What is 17 percent of 4300?":                                  17 * 4300 / 100,
		"What is 123456 / 12?":                                         123456 / 12,
	} {
		want[question] = strconv.Itoa(answer)
	}
	want["What is 15.75 * 12?"] = product("15.75", "12")
}

func addDates(want map[string]string) {
	date := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	days := func(from, to time.Time) string { return strconv.Itoa(int(to.Sub(from).Hours() / 24)) }
	leap := 0
	for y := 2001; y <= 2100; y++ {
		if date(y, 2, 29).Month() == time.February {
			leap++
		}
	}
	friday := date(2026, 5, 31)
	for friday.Weekday() != time.Friday {
		friday = friday.AddDate(0, 0, -1)
	}
	journey := date(2020, 1, 2).Add(6*time.Hour + 15*time.Minute).Sub(date(2020, 1, 1).Add(22*time.Hour + 47*time.Minute))

	want["Which day of the week was 2024-02-29? Answer with its English name."] = date(2024, 2, 29).Weekday().String()
	want["How many days after 2023-12-25 is 2024-03-01?"] = days(date(2023, 12, 25), date(2024, 3, 1))
	want["Which date is 100 days after 2025-01-01? Answer as YYYY-MM-DD."] = date(2025, 1, 101).Format(time.DateOnly)
	want["Which date is 45 days before 2026-03-01? Answer as YYYY-MM-DD."] = date(2026, 3, 1-45).Format(time.DateOnly)
	want["How many days had February in the year 1900 of the Gregorian calendar?"] = days(date(1900, 2, 1), date(1900, 3, 1))
	want["Which day of the week was 2000-01-01? Answer with its English name."] = date(2000, 1, 1).Weekday().String()
	want["Which day of the year is 2025-10-31, if January 1 is day 1?"] = strconv.Itoa(date(2025, 10, 31).YearDay())
	want["How many leap years are there from 2001 to 2100, both included, in the Gregorian calendar?"] = strconv.Itoa(leap)
	want["A train leaves at 22:47 and arrives at 06:15 on the next day, in the same time zone. How many minutes does it travel?"] = strconv.Itoa(int(journey.Minutes()))
	want["Which date is the last Friday of May 2026? Answer as YYYY-MM-DD."] = friday.Format(time.DateOnly)
}

func addUnits(want map[string]string) {
	want["How many metres are 3.75 kilometres?"] = product("3.75", "1000")
	want["How many seconds are 2 hours, 17 minutes and 9 seconds?"] = strconv.Itoa(int((2*time.Hour + 17*time.Minute + 9*time.Second).Seconds()))
	want["How many degrees Celsius are 98.6 degrees Fahrenheit?"] = product("66.6", "5/9") // 98.6 - 32
	want["How many inches are 5 feet and 11 inches?"] = strconv.Itoa(5*12 + 11)
	want["How many grams are 2.35 kilograms?"] = product("2.35", "1000")
	want["A car drives at 90 kilometres per hour. How many metres per second is that?"] = product("90", "1000/3600")
	want["How many millilitres are 1.5 litres and 3 decilitres together?"] = product("18", "100") // decilitres
	want["How many bytes are 3 KiB?"] = strconv.Itoa(3 << 10)
	want["How many square centimetres are 2.4 square metres?"] = product("2.4", "10000")
	want["A mile has 1609.344 metres. How many metres are 5 miles?"] = product("1609.344", "5")
	want["How many degrees Fahrenheit are 25 degrees Celsius?"] = strconv.Itoa(25*9/5 + 32)
}

// product is the exact product of two fractions in its shortest decimal form.
func product(a, b string) string {
	x, _ := new(big.Rat).SetString(a)
	y, _ := new(big.Rat).SetString(b)
	z := x.Mul(x, y)
	return strings.TrimSuffix(strings.TrimRight(z.FloatString(9), "0"), ".")
}
