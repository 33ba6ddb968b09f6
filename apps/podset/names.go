package podset

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Free returns the endless sequence of names for new pods of the set: the set's name and
// the lowest numbers that no pod has. The same world gives the same names, so a repeated
// creation creates only one pod.
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

// Numbered reports whether the name has the form of the set's own names.
func Numbered(set, name string) bool {
	number, ok := strings.CutPrefix(name, set+"-")
	n, err := strconv.ParseUint(number, 10, 32)
	return ok && err == nil && strconv.FormatUint(n, 10) == number
}

// NewPod is a pod to create.
type NewPod struct {
	Name    string
	Attempt int
}

// NewPods returns the next n pods of the set.
func NewPods(set string, seen World, n int) []NewPod {
	pods := make([]NewPod, 0, n)
	for name := range Free(set, seen) {
		if len(pods) == n {
			break
		}
		pods = append(pods, NewPod{Name: name})
	}
	return pods
}
