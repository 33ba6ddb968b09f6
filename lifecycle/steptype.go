package lifecycle

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// StepType declares a step that an application takes, or what it waits for. The engine takes and
// waits for nothing that is not declared: see [Strict].
type StepType struct {
	// Name is that of the steps, e.g. AddLearner.
	Name string
	// Class is the most harm that such a step does; empty means Routine.
	Class Class
	// Wait reports that it is not a step, but what a wait waits for.
	Wait bool
	// Args is a value of the struct of the step's arguments; nil if it has none. Each field has a
	// name for JSON, and is a string, an integer, a boolean, or of a type that implements
	// encoding.TextMarshaler and encoding.TextUnmarshaler. A field without the option omitempty is
	// required:
	//
	//	type GrowArgs struct {
	//		Size int64 `json:"size"`
	//	}
	Args any
}

// harm is the order of the classes.
var harm = []Class{ClassRoutine, ClassDisruptive, ClassDestructive, ClassIrreversible}

func (c Class) level() int { return max(0, slices.Index(harm, c)) }

// objection is what keeps the step from being one of the type; nil if nothing does.
func (t StepType) objection(s Step, waits bool) error {
	switch {
	case t.Wait && !waits:
		return errors.New("it is declared as a wait")
	case !t.Wait && waits:
		return errors.New("it is declared as a step, and waited for")
	case s.Class.level() > t.Class.level():
		return fmt.Errorf("its class is %s, and the declared one is %s", s.Class, harm[t.Class.level()])
	}
	return t.checkArgs(s.Args)
}

func (t StepType) checkArgs(args map[string]string) error {
	switch {
	case t.Args != nil:
		return decodeArgs(args, reflect.New(reflect.TypeOf(t.Args)).Elem())
	case len(args) > 0:
		return fmt.Errorf("it has no arguments, and got %v", args)
	}
	return nil
}

func (t StepType) argsError() error {
	if t.Args == nil {
		return nil
	}
	_, err := argumentsOf(reflect.TypeOf(t.Args))
	return err
}

// CheckStepTypes returns an error unless each type has a name of its own, a known class and arguments
// that can be written.
func CheckStepTypes(types []StepType) error {
	var all []error
	for i, t := range types {
		var wrong string
		switch err := t.argsError(); {
		case t.Name == "" || strings.ContainsAny(t.Name, " \t\n"):
			wrong = "the name must be one word"
		case slices.ContainsFunc(types[:i], func(o StepType) bool { return o.Name == t.Name }):
			wrong = "it is declared twice"
		case t.Class != "" && !slices.Contains(harm, t.Class):
			wrong = fmt.Sprintf("the class %q is unknown", t.Class)
		case err != nil:
			wrong = err.Error()
		default:
			continue
		}
		all = append(all, fmt.Errorf("step %q: %s", t.Name, wrong))
	}
	return errors.Join(all...)
}

// ReasonInvalidStep is the reason of a decision that [Strict] refuses.
const ReasonInvalidStep = "InvalidStep"

// Strict returns the planner, except that it is blocked where it decides on a step, or a wait, that is
// not one of the types. No gate, policy or driver knows what such a step does. [CheckStepTypes] must
// have accepted the types.
func Strict[T Resource, W any](p Planner[T, W], types []StepType) Planner[T, W] {
	declared := map[string]StepType{}
	for _, t := range types {
		declared[t.Name] = t
	}
	return strict[T, W]{p, declared}
}

type strict[T Resource, W any] struct {
	Planner[T, W]
	types map[string]StepType
}

// Next implements Planner.
func (p strict[T, W]) Next(want T, seen W, now time.Time) Decision {
	d := p.checked(p.Planner.Next(want, seen, now))
	for i, next := range d.Behind {
		if checked := p.checked(next); checked.Outcome != next.Outcome {
			d.Behind = append(slices.Clone(d.Behind[:i]), checked) // nothing goes past a block
			break
		}
	}
	return d
}

func (p strict[T, W]) checked(d Decision) Decision {
	if d.Outcome != OutcomeProceed && d.Outcome != OutcomeWait {
		return d
	}
	t, known := p.types[d.Step.Name]
	err := errors.New("no such step is declared")
	if known {
		err = t.objection(d.Step, d.Outcome == OutcomeWait)
	}
	if err == nil {
		return d
	}
	return Block(ReasonInvalidStep, fmt.Sprintf(
		"The operator's rules want the step %s, which they may not take: %v. That is a defect of the operator, and it changes nothing. Report it, with this message.", d.Step, err))
}
