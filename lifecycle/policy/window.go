package policy

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the zones are known wherever the operator runs

	cron "github.com/netresearch/go-cron"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// window is a recurring period of time.
type window struct {
	// schedule uses wall-clock time, which has no zone and is represented as UTC.
	schedule *cron.SpecSchedule
	duration time.Duration
	zone     *time.Location
}

// epoch is the start of the search for a window that ever opens. Any time would do, because
// calendars recur; it is fixed so that the result does not depend on the present time.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// newWindow parses a window; the error names the field, its value and what is allowed.
func newWindow(w v1alpha1.Window) (window, error) {
	zone, err := location(w.TimeZone)
	if err != nil {
		return window{}, err
	}
	schedule, err := crontab(w.Schedule)
	if err != nil {
		return window{}, err
	}
	if w.Duration.Duration < time.Minute {
		return window{}, fmt.Errorf("duration %q must be at least 1m", w.Duration.Duration)
	}
	if schedule.Next(epoch).IsZero() {
		return window{}, fmt.Errorf("schedule %q never comes: there is no such day", w.Schedule)
	}
	return window{schedule: schedule, duration: w.Duration.Duration, zone: zone}, nil
}

func location(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("timeZone %q is unknown: use a name of the IANA database, as Europe/Zurich or UTC", name)
	}
	return zone, nil
}

func crontab(spec string) (*cron.SpecSchedule, error) {
	if strings.Contains(spec, "TZ=") {
		return nil, fmt.Errorf("schedule %q has a time zone: put it into timeZone", spec)
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return nil, fmt.Errorf("schedule %q is none: %w; use five fields, minute hour day month weekday, as \"0 2 * * 6\"", spec, err)
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("schedule %q is no time of the day: use five fields, as \"0 2 * * 6\", or @daily, @weekly, @monthly", spec)
	}
	schedule.Location = time.UTC
	return schedule, nil
}

// wall returns the wall-clock time in the zone.
func (w window) wall(t time.Time) time.Time { return t.UTC().Add(w.offset(t)) }

// day is more than any offset of a zone from UTC.
const day = 24 * time.Hour

// offset is the zone's offset from UTC at the time.
func (w window) offset(t time.Time) time.Duration {
	_, seconds := t.In(w.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// instant returns when clocks show the wall-clock time: the first time if it occurs twice,
// and without the clock change if it is skipped.
func (w window) instant(wall time.Time) time.Time {
	before, after := wall.Add(-w.offset(wall.Add(-day))), wall.Add(-w.offset(wall.Add(day)))
	if !w.wall(before).Equal(wall) && w.wall(after).Equal(wall) {
		return after
	}
	return before
}

// steady reports whether the offset does not change near the time.
func (w window) steady(t time.Time) bool { return w.offset(t.Add(-day)) == w.offset(t.Add(day)) }

// maxShift is the largest clock change.
const maxShift = 2 * time.Hour

// next returns the first opening after the time. Near a clock change a later wall-clock time
// may come sooner, so all openings of a few hours are compared there.
func (w window) next(after time.Time) time.Time {
	wall := w.wall(after)
	if !w.steady(after) {
		wall = wall.Add(-maxShift)
	}
	var first time.Time
	for {
		wall = w.schedule.Next(wall)
		at := w.instant(wall)
		if wall.IsZero() || !first.IsZero() && wall.After(w.wall(first).Add(maxShift)) {
			return first
		}
		if !at.After(after) {
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if w.steady(first) {
			return first
		}
	}
}

// closes returns when the window that is open at the time closes, and false if none is open.
func (w window) closes(at time.Time) (time.Time, bool) {
	for back := time.Hour; ; back *= 2 {
		back = min(back, w.duration)
		opened := w.next(at.Add(-back))
		if !opened.IsZero() && !opened.After(at) {
			return w.latest(opened, at).Add(w.duration), true
		}
		if back == w.duration {
			return time.Time{}, false
		}
	}
}

// latest returns the last opening that is not after the time, starting at a known opening.
func (w window) latest(opened, at time.Time) time.Time {
	for {
		next := w.next(opened)
		if next.IsZero() || next.After(at) {
			return opened
		}
		opened = next
	}
}

// windows are open when any of them is.
type windows []window

// always is how long consecutive windows must be open without a gap to count as always
// open; longer than any window.
const always = 8 * day

// state of windows at a time.
type state struct {
	open bool
	// closes is when they close; zero if never.
	closes time.Time
	// opens is when they open; zero if they are open or never open.
	opens time.Time
	// zone is the zone of the window that opens.
	zone *time.Location
}

func (all windows) at(now time.Time) state {
	closes, open := all.closing(now)
	if !open {
		return all.opening(now)
	}
	for closes.Sub(now) < always {
		later, open := all.closing(closes)
		if !open {
			return state{open: true, closes: closes}
		}
		closes = later
	}
	return state{open: true}
}

func (all windows) closing(at time.Time) (latest time.Time, open bool) {
	for _, w := range all {
		if closes, ok := w.closes(at); ok && closes.After(latest) {
			latest, open = closes, true
		}
	}
	return latest, open
}

func (all windows) opening(now time.Time) (s state) {
	for _, w := range all {
		if at := w.next(now); !at.IsZero() && (s.opens.IsZero() || at.Before(s.opens)) {
			s.opens, s.zone = at, w.zone
		}
	}
	return s
}

// newWindows parses all windows. An invalid window never opens.
func newWindows(all []v1alpha1.Window) (windows, []string) {
	var read windows
	var faults []string
	for i, w := range all {
		one, err := newWindow(w)
		if err != nil {
			faults = append(faults, fmt.Errorf("spec.windows[%d].%w", i, err).Error())
			continue
		}
		read = append(read, one)
	}
	return read, faults
}
