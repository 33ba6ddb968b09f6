package preview_test

import (
	"strings"
	"testing"
	"time"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

func report(steps, resources int) preview.Report {
	r := preview.Terminal(lifecycle.First())
	for range steps {
		r.Steps = append(r.Steps, preview.Step{Step: lifecycle.Step{Name: "Add", Message: strings.Repeat("x", 100)}})
	}
	for range resources {
		r.Resources = append(r.Resources, preview.Resource{Verb: "Created", Kind: "Service", Name: "s"})
	}
	return r
}

func TestAReportFits(t *testing.T) {
	const limit = 10000
	for _, r := range []preview.Report{report(0, 0), report(10, 1), report(500, 3), report(500, 3000)} {
		raw, err := r.Encode(limit)
		if err != nil || len(raw) > limit {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
		got, ok := preview.Decode(raw)
		if !ok || len(got.Steps)+got.Omitted != len(r.Steps) || !got.Settles() {
			t.Errorf("%d steps and %d omitted, want %d", len(got.Steps), got.Omitted, len(r.Steps))
		}
		if less := len(got.Resources) < len(r.Resources); less != (len(got.Unknowns) > 0) {
			t.Errorf("%d resources of %d, and it says %q", len(got.Resources), len(r.Resources), got.Unknowns)
		}
	}
}

func TestPreviewRequestIsNoReport(t *testing.T) {
	for _, raw := range []string{"", "update", "{}", "null"} {
		if _, ok := preview.Decode(raw); ok {
			t.Errorf("%q is read as a report", raw)
		}
	}
}

func TestExpect(t *testing.T) {
	p := report(1, 0).Expect(func(name string) (time.Duration, bool) { return time.Second, name == "Add" })
	if got := p.Steps[0].Expected.Duration; got != time.Second {
		t.Errorf("got %v", got)
	}
}
