package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/engine/internal/forecast"
	"github.com/governor-dev/governor/engine/internal/kindcache"
)

// bare is a manager with a scheme alone.
type bare struct {
	manager.Manager
	scheme *runtime.Scheme
}

func (m bare) GetScheme() *runtime.Scheme { return m.scheme }
func (m bare) GetLogger() logr.Logger     { return logr.Discard() }

// flaky serves a kind that cannot be run at first.
type flaky struct {
	kindcache.Kinds
	fails int
	asked []time.Time
}

func (k *flaky) While(ctx context.Context, _ schema.GroupVersionKind, _ func(context.Context) error) error {
	if k.asked = append(k.asked, time.Now()); len(k.asked) <= k.fails {
		return errors.New("its cache cannot be filled")
	}
	<-ctx.Done()
	return nil
}

func supervise(k *flaky, scheme *runtime.Scheme) (*Operator, *supervisor[*fake, struct{}]) {
	op := &Operator{mgr: bare{scheme: scheme}, kinds: k}
	return op, &supervisor[*fake, struct{}]{operator: op, app: App[*fake, struct{}]{Name: "fake"}, ahead: &forecast.Forecaster[*fake, struct{}]{}, registration: &registration{ended: make(chan struct{})}}
}

// An application that cannot start is started again, at a pace, until the operator ends.
func TestAnApplicationThatCannotStartIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, began := &flaky{fails: 2}, time.Now()
		op, s := supervise(k, fakeScheme())
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
		op.Wait()
		var after []time.Duration
		for _, at := range k.asked {
			after = append(after, at.Sub(began))
		}
		if diff := cmp.Diff([]time.Duration{0, again, 2 * again}, after); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it ended after %s", took)
		}
	})
}

// The end of the operator is not delayed by an application that waits for its next start.
func TestAnApplicationEndsWithTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := supervise(&flaky{fails: 100}, fakeScheme())
		ctx, stop := context.WithTimeout(t.Context(), again+time.Second)
		defer stop()
		began := time.Now()
		if err := s.Start(ctx); err != nil || time.Since(began) != again+time.Second {
			t.Errorf("it ended after %s, %v", time.Since(began), err)
		}
	})
}

// A kind that the scheme lacks is a mistake of the program, which no wait repairs.
func TestAnUnknownKindEndsTheOperator(t *testing.T) {
	op, s := supervise(&flaky{}, runtime.NewScheme())
	if err := s.Start(t.Context()); err == nil {
		t.Error("it runs")
	}
	op.Wait()
}

// Every replica keeps its caches warm, and only the leader reconciles.
func TestAStandbyRunsItsApplications(t *testing.T) {
	if _, s := supervise(&flaky{}, fakeScheme()); s.NeedLeaderElection() {
		t.Error("it waits for leadership")
	}
}
