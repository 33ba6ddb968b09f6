package candy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/machine"
)

// Resources implements lifecycle.Planner: nothing of a candy is in Kubernetes.
func (Planner) Resources(*v1.Candy, World) ([]lifecycle.Object, error) { return nil, nil }

// Status tells what was measured and done. What the machine does not say stays as it was.
func (Planner) Status(want *v1.Candy, seen World) {
	s := &want.Status
	s.Machine, s.Wanted = want.Spec.Machine, want.Spec.Sugar()
	if s.Delivered != nil && s.Delivered.Flavor != want.Spec.Flavor {
		s.Delivered = nil
	}
	job := seen.Job
	if job == nil || job.Order.Sugar != s.Wanted {
		return
	}
	s.Bars = v1.Bars{Made: job.Made, Disposed: job.Disposed}
	for _, bar := range []*machine.Bar{job.Bar, job.Delivered, job.Binned} {
		if bar != nil && bar.Measured != nil {
			s.Sweetness, s.Disposed = sweetness(bar), bar == job.Binned
			break
		}
	}
	if job.Delivered != nil {
		s.Delivered = &v1.Delivered{Bar: job.Delivered.ID, Flavor: want.Spec.Flavor}
	}
}

func sweetness(bar *machine.Bar) *v1.Sweetness {
	return &v1.Sweetness{
		Bar: bar.ID, Value: measured(bar), Unit: v1.Unit, Samples: len(bar.Measured.Samples),
		Time: metav1.NewTime(bar.Measured.At.UTC().Truncate(time.Second)), // as the API keeps it
	}
}

// Conditions tell whether the machine answers, which is Unknown while it does not, and whether its sensor is trusted.
func (Planner) Conditions(want *v1.Candy, seen World, _ lifecycle.Decision) []lifecycle.Condition {
	answers := lifecycle.Condition{Type: "MachineAnswers", Status: metav1.ConditionTrue, Reason: "Answered", Message: "The machine answers."}
	if !seen.Answers {
		answers.Status, answers.Reason, answers.Message = metav1.ConditionUnknown, "Silent", "The machine does not answer."
	}
	sensor := lifecycle.Condition{Type: "SensorTrusted", Status: metav1.ConditionUnknown, Reason: "Unmeasured", Message: "Nothing was measured."}
	switch bar := seen.bar(); Judge(bar, want.Spec.Sugar()) {
	case Unmeasured:
	case Untrusted:
		sensor.Status, sensor.Reason, sensor.Message = metav1.ConditionFalse, "ReferenceOff", "The sensor does not read its reference as it should."
	default:
		sensor.Status, sensor.Reason, sensor.Message = metav1.ConditionTrue, "ReferenceRead", "The sensor reads its reference as it should."
	}
	return []lifecycle.Condition{answers, sensor}
}
