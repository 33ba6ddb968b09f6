package main

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

func write(value string, call, end int64, unknown bool) porcupine.Operation {
	if unknown {
		end = math.MaxInt64
	}
	return porcupine.Operation{Input: operation{"r", true, value}, Call: call, Output: result{unknown: unknown}, Return: end}
}

func read(value string, call, end int64) porcupine.Operation {
	return porcupine.Operation{Input: operation{"r", false, ""}, Call: call, Output: result{value: value}, Return: end}
}

func TestLinearizability(t *testing.T) {
	cases := map[string]struct {
		reason  string
		history []porcupine.Operation
		want    bool
	}{
		"Plain":      {"a read sees the last write", []porcupine.Operation{write("a", 1, 2, false), read("a", 3, 4)}, true},
		"Lost":       {"an acknowledged write is lost", []porcupine.Operation{write("a", 1, 2, false), read("", 3, 4)}, false},
		"Stale":      {"a read sees what was overwritten", []porcupine.Operation{write("a", 1, 2, false), write("b", 3, 4, false), read("a", 5, 6)}, false},
		"Late":       {"a write without an answer may happen later", []porcupine.Operation{write("a", 1, 2, true), read("", 3, 4), read("a", 5, 6)}, true},
		"Concurrent": {"either order explains it", []porcupine.Operation{write("a", 1, 9, false), read("", 2, 3), read("a", 4, 5)}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := porcupine.CheckOperations(registerModel, c.history); got != c.want {
				t.Errorf("%s: %v", c.reason, got)
			}
		})
	}
}
