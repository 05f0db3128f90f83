// Package plural writes counts of things for people.
package plural

import (
	"fmt"
	"strings"
)

// Of is such as "1 entry", "2 entries" or "0 programs".
func Of[N int | int64](n N, noun string) string {
	if n != 1 {
		if stem, ok := strings.CutSuffix(noun, "y"); ok {
			noun = stem + "ie"
		}
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Choose is one for one thing and many otherwise: a verb, such as "is" and "are".
func Choose[N int | int64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
