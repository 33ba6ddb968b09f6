package explain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/kube/password"
	"github.com/governor-dev/governor/lifecycle"
)

func TestExplain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "p", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		reason  string
		err     error
		outcome lifecycle.Outcome
		want    string
	}{
		"Foreign":     {"only the user can free a name", &apply.ForeignError{Kind: "Service", Name: "m"}, lifecycle.OutcomeBlocked, "NameTaken"},
		"Going":       {"what is being deleted goes by itself", &apply.StillDeletingError{Kind: "Service", Name: "m"}, lifecycle.OutcomeRetry, "PreviousStillDeleting"},
		"Quota":       {"a quota has its own name", apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q")), lifecycle.OutcomeBlocked, "QuotaExceeded"},
		"QuotaValue":  {"a quota may demand a value", apierrors.NewForbidden(pods, "p", errors.New("failed quota: q: must specify limits.cpu")), lifecycle.OutcomeBlocked, "QuotaExceeded"},
		"Forbidden":   {"rights are missing", apierrors.NewForbidden(pods, "p", errors.New("no")), lifecycle.OutcomeBlocked, "Forbidden"},
		"Terminating": {"the namespace goes", terminating, lifecycle.OutcomeBlocked, "NamespaceTerminating"},
		"Invalid":     {"the API server does not accept the spec", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), lifecycle.OutcomeBlocked, "Refused"},
		"Conflict":    {"another writer was faster", apierrors.NewConflict(pods, "p", errors.New("changed")), lifecycle.OutcomeRetry, "Conflict"},
		"Network":     {"the API server is away", errors.New("connection refused"), lifecycle.OutcomeRetry, "APIError"},
		"Compare": {"the API server received no write", fmt.Errorf("x: %w", &apply.CompareError{Kind: "Certificate", Name: "m", Err: errors.New("no")}),
			lifecycle.OutcomeRetry, "CannotCompare"},
		"Recipe":   {"a certificate request that is invalid", &certificate.RequestError{Secret: "s", Fault: "f"}, lifecycle.OutcomeBlocked, "CannotRender"},
		"Orphan":   {"an object lost its owner, which is being deleted", &apply.OwnerDeletingError{}, lifecycle.OutcomeBlocked, "OwnerDeleting"},
		"Password": {"a password request that is invalid", &password.RequestError{}, lifecycle.OutcomeBlocked, "CannotRender"},
		"Joined":   {"of several, what needs a person counts", errors.Join(errors.New("x"), &apply.ForeignError{}), lifecycle.OutcomeBlocked, "NameTaken"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := Error(fmt.Errorf("cannot apply: %w", c.err))
			if d.Outcome != c.outcome || d.Reason != c.want || !strings.HasSuffix(d.Message, ".") {
				t.Errorf("%s: got %s, want %s %s", c.reason, d, c.outcome, c.want)
			}
		})
	}
}

func TestDeferredStepIsRetriedAfterItsDelay(t *testing.T) {
	for _, after := range []time.Duration{0, 300 * time.Millisecond} {
		d := Error(fmt.Errorf("cannot add: %w", &lifecycle.Deferred{Reason: "five seconds have not passed", After: after}))
		if d.Outcome != lifecycle.OutcomeRetry || d.After != after {
			t.Errorf("deferred for %s: got %s after %s", after, d, d.After)
		}
	}
}
