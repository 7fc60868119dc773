package main

import (
	"fmt"

	"github.com/agnivade/levenshtein"
)

// didYouMean is the end of a sentence about an unknown word: what may have
// been meant, or nothing if no known word is near.
func didYouMean(word string, known []string) string {
	best, distance := "", max(2, len(word)/2)+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}
