package apply_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/governor-dev/governor/kube/apply"
)

func TestStuck(t *testing.T) {
	of := func(err error) error { return &apply.Failure{Kind: "Service", Err: err} }
	foreign, going := of(&apply.ForeignError{Kind: "Service"}), of(fmt.Errorf("x: %w", &apply.StillDeletingError{Kind: "Service"}))
	invalid := of(fmt.Errorf("cannot apply: %w", errors.Join(apierrors.NewInvalid(schema.GroupKind{}, "x", nil))))
	outage := of(errors.New("connection refused"))
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"None":    {nil, 0},
		"One":     {foreign, 1},
		"Three":   {errors.Join(foreign, going, errors.Join(invalid)), 3},
		"Outage":  {errors.Join(foreign, outage), 0},
		"General": {errors.Join(foreign, errors.New("cannot list")), 0},
	} {
		if got := len(apply.BlockedObjects(c.err)); got != c.want {
			t.Errorf("%s: %d objects, want %d", name, got, c.want)
		}
	}
}
