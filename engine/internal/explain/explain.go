// Package explain makes decisions of errors: of refused writes, of what cannot be rendered, and of panics.
package explain

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/kube/password"
	"github.com/governor-dev/governor/lifecycle"
)

// going is when to look again whether an object of an earlier time has gone.
const going = time.Second

const (
	// APIError is the reason when nothing better is known.
	APIError = "APIError"
	// cannotCompare is the reason when an object and its declaration could not be compared.
	cannotCompare = "CannotCompare"
	// Deferred is the reason of a step that was not begun.
	Deferred = "Deferred"
)

// CannotObserve is the decision while the driver does not see the application.
var CannotObserve = lifecycle.RetryIn(0, "CannotObserve", "The operator cannot see the application; nothing is changed until it can.")

// Error makes a decision of a failed write: whether it is worth repeating soon,
// or a user must act, and how.
func Error(err error) lifecycle.Decision {
	var foreign *apply.ForeignError
	var stale *apply.StillDeletingError
	var ownerless *apply.OwnerDeletingError
	var compare *apply.CompareError
	var later *lifecycle.Deferred
	var recipe *certificate.RequestError
	var secret *password.RequestError
	var decided *lifecycle.DecisionError
	switch {
	case errors.As(err, &decided):
		return decided.Decision
	case errors.As(err, &later):
		return lifecycle.RetryIn(later.After, Deferred, "Not now: "+later.Reason+".")
	case errors.As(err, &recipe):
		return lifecycle.Block("CannotRender", recipe.Error()+".")
	case errors.As(err, &secret):
		return lifecycle.Block("CannotRender", "A password cannot be made: "+secret.Error()+".")
	case errors.As(err, &compare):
		return lifecycle.RetryIn(0, cannotCompare, fmt.Sprintf("%s. Nothing was written; Governor tries again.", Statement(compare)))
	case errors.As(err, &foreign):
		return lifecycle.Block("NameTaken", fmt.Sprintf(
			"%s. It is left alone. Remove or rename it, or give this object another name.", foreign))
	case errors.As(err, &ownerless):
		return lifecycle.Block("OwnerDeleting", "The object "+ownerless.Error()+". Governor leaves it alone. Set the owner reference again, or delete it.")
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return lifecycle.Block("NamespaceTerminating", "The namespace is being deleted; nothing is created in it any more.")
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return lifecycle.Block("QuotaExceeded", fmt.Sprintf(
			"%s. Raise the quota or free some of it; Governor tries again.", Statement(err)))
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "failed quota"): // the quota demands values that the pod lacks
		return lifecycle.Block("QuotaExceeded", fmt.Sprintf("%s. Declare what the quota demands, or change the quota.", Statement(err)))
	case apierrors.IsForbidden(err):
		return lifecycle.Block("Forbidden", fmt.Sprintf("%s. Grant the operator what it lacks, or change the policy that refuses it.", Statement(err)))
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "denied request"): // by an admission policy
		return lifecycle.Block("Refused", fmt.Sprintf("%s. Change the spec, or the policy that refuses it.", Statement(err)))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return lifecycle.Block("Refused", fmt.Sprintf("%s. Change the spec accordingly.", Statement(err)))
	case errors.As(err, &stale):
		return lifecycle.RetryIn(going, "PreviousStillDeleting", stale.Error()+".")
	case apierrors.IsConflict(err):
		return lifecycle.RetryIn(0, "Conflict", "Another writer changed the object at the same time; Governor tries again.")
	}
	return lifecycle.RetryIn(0, APIError, "The API server did not accept a write; Governor tries again.")
}

// Statement is the error on one line, without the full stop that some have.
func Statement(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(first, ".")
}

// Rendering makes a decision of an error of Planner.Resources.
func Rendering(err error) lifecycle.Decision {
	if decided := (&lifecycle.DecisionError{}); errors.As(err, &decided) {
		return decided.Decision
	}
	return lifecycle.Block("CannotRender", err.Error())
}

// Panic makes a decision of a panic of the planner or driver.
func Panic(thrown any) lifecycle.Decision {
	return lifecycle.Block("OperatorBug", fmt.Sprintf(
		"The operator's own rules failed on this object (%v). Other objects are not affected. "+
			"Please report it with the operator's log; changing the spec may avoid it.", thrown))
}
