package history_test

import (
	"os"
	"strings"
	"testing"

	"github.com/governor-dev/governor/lifecycle/history"
)

// Books are older and younger than the operator that reads them. None of them was
// forged, and none is when an entry is added.
func TestHistoriesOfOtherReleasesVerify(t *testing.T) {
	for name, reason := range map[string]string{
		"first":     "as the first release wrote it, with other names of a step's fields",
		"rewritten": "begun by the first release, rewritten and continued by the second",
		"later":     "with fields that this operator does not know",
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile("testdata/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			b := read(t, string(raw))
			if err := b.Verify(); err != nil || len(b.Entries) < 2 || b.Entries[0].Step.Name != "Add" {
				t.Fatalf("%s: %v: %+v", reason, err, b)
			}
			again, err := b.Waited(awaited("Ready", 5)).Append(entry(7)).Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := read(t, again).Verify(); err != nil {
				t.Errorf("%s, and continued: %v", reason, err)
			}
			forged := strings.Replace(again, `"generation":1`, `"generation":2`, 1)
			if read(t, forged).Verify() == nil {
				t.Errorf("%s: that it was changed must show", reason)
			}
		})
	}
}

func read(t *testing.T, raw string) history.Log {
	t.Helper()
	b, err := history.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnknownFieldsAreKept(t *testing.T) {
	raw := `{"entries":[{"step":{"name":"Add"},"colour":"green"}]}`
	again, err := read(t, raw).Append(entry(1)).Encode()
	if err != nil || !strings.Contains(again, `"colour":"green"`) {
		t.Errorf("an older operator must not take away what a younger one wrote: %s, %v", again, err)
	}
}
