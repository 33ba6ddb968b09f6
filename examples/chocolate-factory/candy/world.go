package candy

import (
	"math"
	"slices"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/machine"
)

// World is the machine as one candy sees it.
type World struct {
	// Answers says that the machine answers. Nothing else is known if it does not.
	Answers bool
	// Job is what the machine does for the candy; nil if it knows of none.
	Job *machine.Job
	// Binning is the bar that is being disposed of: of worlds during a step only.
	Binning *machine.Bar
}

// with returns the world with the job changed.
func (w World) with(edit func(*machine.Job)) World {
	job := machine.Job{}
	if w.Job != nil {
		job = *w.Job
	}
	edit(&job)
	w.Job = &job
	return w
}

// bar is the one on the belt, or nil.
func (w World) bar() *machine.Bar {
	if w.Job == nil {
		return nil
	}
	return w.Job.Bar
}

// Verdict is what a measurement says of a bar.
type Verdict string

// What can be said of a bar.
const (
	// Unmeasured: nothing was measured yet.
	Unmeasured Verdict = "Unmeasured"
	// Untrusted: the sensor reads its reference wrongly, or its samples contradict each other.
	Untrusted Verdict = "Untrusted"
	// Unsure: the bar is so close to the limit that more samples are needed.
	Unsure Verdict = "Unsure"
	// Fits and Misfits: the bar is within tolerance, or is not.
	Fits    Verdict = "Fits"
	Misfits Verdict = "Misfits"
)

const (
	// trusted is how far off, in mg/g, a sensor may read its reference.
	trusted = 6
	// coherent is how far samples may scatter.
	coherent = 20
	// persistent is how many measurements are made to become sure.
	persistent = 3
)

// Judge says what is known of a bar that should have so much sugar.
func Judge(bar *machine.Bar, sugar int) Verdict {
	if bar == nil || bar.Measured == nil || len(bar.Measured.Samples) == 0 || len(bar.Measured.Reference) == 0 {
		return Unmeasured
	}
	m := bar.Measured
	if abs(Median(m.Reference)-machine.Reference) > trusted || scatter(m.Samples) > coherent {
		return Untrusted
	}
	off := abs(Median(m.Samples) - sugar)
	if abs(off-v1.Tolerance) <= doubt(m.Samples) && bar.Measurements < persistent {
		return Unsure
	}
	if off > v1.Tolerance {
		return Misfits
	}
	return Fits
}

// Median is the value of samples some of which are nonsense; 0 if there are none.
func Median(samples []int) int {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// scatter is the standard deviation of samples, estimated by the median distance from the median: half of them may be
// nonsense.
func scatter(samples []int) float64 {
	middle := Median(samples)
	off := make([]int, len(samples))
	for i, s := range samples {
		off[i] = abs(s - middle)
	}
	return 1.4826 * float64(Median(off))
}

// doubt is how far the median may be from the truth: three times its standard error.
func doubt(samples []int) int {
	return int(math.Ceil(3 * 1.2533 * scatter(samples) / math.Sqrt(float64(len(samples)))))
}

func abs(n int) int { return max(n, -n) }
