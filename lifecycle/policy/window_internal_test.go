package policy

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func declared(schedule, zone string, d time.Duration) v1alpha1.Window {
	return v1alpha1.Window{Schedule: schedule, TimeZone: zone, Duration: metav1.Duration{Duration: d}}
}

func opened(t *testing.T, schedule, zone string, d time.Duration) window {
	t.Helper()
	w, err := newWindow(declared(schedule, zone, d))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The nights in which clocks change, as they did or will.
func TestNextAcrossChangesOfTheClocks(t *testing.T) {
	cases := map[string]struct {
		reason         string
		schedule, zone string
		after          string
		want           []string
	}{
		"ZurichSpring": {
			"02:30 is left out on March 29: an hour later by the clock", "30 2 * * *", "Europe/Zurich", "2026-03-28T02:00:00Z",
			[]string{"2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		},
		"ZurichAutumn": {
			"02:30 comes twice on October 25: the first counts", "30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		"ZurichBetween": {
			"also for a query between the two", "30 2 * * *", "Europe/Zurich", "2026-10-25T00:45:00Z",
			[]string{"2026-10-26T01:30:00Z"},
		},
		"ZurichOrder": {
			"02:45 that is left out comes after 03:15", "15,45 2,3 * * *", "Europe/Zurich", "2026-03-29T00:59:00Z",
			[]string{"2026-03-29T01:15:00Z", "2026-03-29T01:45:00Z", "2026-03-30T00:15:00Z"},
		},
		"NewYorkSpring": {
			"02:30 is left out on March 8", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"},
		},
		"NewYorkAutumn": {
			"01:30 comes twice on November 1", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		},
		"LordHowe": {
			"clocks go forward by half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"},
		},
		"Weekly":  {"Saturdays at two", "0 2 * * 6", "Europe/Zurich", "2026-11-21T12:00:00Z", []string{"2026-11-28T01:00:00Z", "2026-12-05T01:00:00Z"}},
		"UTC":     {"without a zone", "@daily", "", "2026-03-29T00:00:00Z", []string{"2026-03-30T00:00:00Z"}},
		"LeapDay": {"years away, and yet", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, now := opened(t, c.schedule, c.zone, time.Hour), at(t, c.after)
			for _, want := range c.want {
				if now = w.next(now); !now.Equal(at(t, want)) {
					t.Fatalf("%s: got %s, want %s", c.reason, now.UTC(), want)
				}
			}
		})
	}
}

func TestOpenAndClosed(t *testing.T) {
	const zurich = "Europe/Zurich"
	weekly, minutely := declared("0 2 * * 6", zurich, 3*time.Hour), declared("* * * * *", "UTC", time.Minute)
	cases := map[string]struct {
		reason  string
		windows []v1alpha1.Window
		now     string
		open    bool
		change  string
	}{
		"Before":  {"an hour to go", []v1alpha1.Window{weekly}, "2026-11-28T00:00:00Z", false, "2026-11-28T01:00:00Z"},
		"Opening": {"the moment itself is in it", []v1alpha1.Window{weekly}, "2026-11-28T01:00:00Z", true, "2026-11-28T04:00:00Z"},
		"Inside":  {"still open", []v1alpha1.Window{weekly}, "2026-11-28T03:59:59Z", true, "2026-11-28T04:00:00Z"},
		"Closing": {"the end is not in it", []v1alpha1.Window{weekly}, "2026-11-28T04:00:00Z", false, "2026-12-05T01:00:00Z"},
		"ShortNight": {
			"three hours are three hours when clocks skip one", []v1alpha1.Window{declared("0 1 * * 0", zurich, 3*time.Hour)},
			"2026-03-29T02:30:00Z", true, "2026-03-29T03:00:00Z",
		},
		"LongNight": {
			"and when they show one twice", []v1alpha1.Window{declared("0 2 * * 0", zurich, 3*time.Hour)},
			"2026-10-25T02:59:00Z", true, "2026-10-25T03:00:00Z",
		},
		"Joined": {
			"windows that follow each other are one", []v1alpha1.Window{declared("0 1 * * *", "UTC", time.Hour), declared("0 2 * * *", "UTC", 2*time.Hour)},
			"2026-05-05T01:30:00Z", true, "2026-05-05T04:00:00Z",
		},
		"First":  {"the first of several to open", []v1alpha1.Window{weekly, declared("0 5 * * *", "UTC", time.Hour)}, "2026-11-24T06:00:00Z", false, "2026-11-25T05:00:00Z"},
		"Always": {"without a gap, there is no end", []v1alpha1.Window{minutely}, "2026-11-24T06:00:30Z", true, ""},
		"Week":   {"the longest window", []v1alpha1.Window{declared("0 0 1 * *", "UTC", 168*time.Hour)}, "2026-11-07T23:59:00Z", true, "2026-11-08T00:00:00Z"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all, faults := newWindows(c.windows)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			s := all.at(at(t, c.now))
			change := s.closes
			if !s.open {
				change = s.opens
			}
			if s.open != c.open || c.change == "" && !change.IsZero() || c.change != "" && !change.Equal(at(t, c.change)) {
				t.Errorf("%s: open %v until %s, want %v until %s", c.reason, s.open, change, c.open, c.change)
			}
		})
	}
}

func TestInvalidWindowsAreReported(t *testing.T) {
	cases := map[string]struct {
		window v1alpha1.Window
		want   string
	}{
		"Never":    {declared("0 0 30 2 *", "UTC", time.Hour), `schedule "0 0 30 2 *" never comes`},
		"Fields":   {declared("0 2 * *", "UTC", time.Hour), "five fields"},
		"Range":    {declared("0 25 * * *", "UTC", time.Hour), "25"},
		"Every":    {declared("@every 1h", "UTC", time.Hour), "no time of the day"},
		"ZoneIn":   {declared("TZ=UTC 0 2 * * *", "UTC", time.Hour), "put it into timeZone"},
		"Zone":     {declared("0 2 * * *", "Europe/Zurch", time.Hour), `timeZone "Europe/Zurch" is unknown`},
		"Local":    {declared("0 2 * * *", "Local", time.Hour), `timeZone "Local" is unknown`},
		"Duration": {declared("0 2 * * *", "UTC", time.Second), `duration "1s" must be at least 1m`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all, faults := newWindows([]v1alpha1.Window{declared("0 2 * * *", "UTC", time.Hour), c.window})
			if len(all) != 1 || len(faults) != 1 || !strings.HasPrefix(faults[0], "spec.windows[1].") || !strings.Contains(faults[0], c.want) {
				t.Errorf("%d windows, faults %q, want %q", len(all), faults, c.want)
			}
		})
	}
}

// Between any two changes of its state a window is what it was: the steps of a whole
// year, hour by hour, agree with what was said before.
func TestWindowAgreesWithItsPrediction(t *testing.T) {
	for _, zone := range []string{"Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "UTC"} {
		all := windows{opened(t, "30 1,2 * * 0,3", zone, 90*time.Minute)}
		said := all.at(at(t, "2026-01-01T00:00:00Z"))
		for now := at(t, "2026-01-01T00:00:00Z"); now.Before(at(t, "2027-01-01T00:00:00Z")); now = now.Add(30 * time.Minute) {
			s := all.at(now)
			if due := later(said); !due.After(now) {
				if !due.Equal(now) || s.open == said.open {
					t.Fatalf("%s: at %s it is open %v, and should have changed at %s", zone, now, s.open, due)
				}
			} else if s.open != said.open || !later(s).Equal(due) {
				t.Fatalf("%s: at %s it is open %v until %s; said was %v until %s", zone, now, s.open, later(s), said.open, due)
			}
			said = s
		}
	}
}

func later(s state) time.Time {
	if s.open {
		return s.closes
	}
	return s.opens
}
