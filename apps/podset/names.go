package podset

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Free returns the names that the next pods of the set get, without end: its own name
// and the lowest numbers that no pod has. The same world gives the same names, so a
// creation that is repeated, or made twice, makes one pod.
func Free(set string, seen World) iter.Seq[string] {
	taken := make(map[string]bool, len(seen.Pods))
	for _, p := range seen.Pods {
		taken[p.Name] = true
	}
	return func(yield func(string) bool) {
		for n := 0; ; n++ {
			name := fmt.Sprintf("%s-%d", set, n)
			if !taken[name] && !yield(name) {
				return
			}
		}
	}
}

// Numbered reports whether the name is one that the set gives.
func Numbered(set, name string) bool {
	number, ok := strings.CutPrefix(name, set+"-")
	n, err := strconv.ParseUint(number, 10, 32)
	return ok && err == nil && strconv.FormatUint(n, 10) == number
}

// NewPod is a pod to be made.
type NewPod struct {
	Name    string
	Attempt int
}

// NewPods are the next n pods of the set.
func NewPods(set string, seen World, n int) []NewPod {
	births := make([]NewPod, 0, n)
	for name := range Free(set, seen) {
		if len(births) == n {
			break
		}
		births = append(births, NewPod{Name: name})
	}
	return births
}
