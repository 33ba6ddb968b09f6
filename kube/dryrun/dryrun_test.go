package dryrun_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/governor-dev/governor/kube/dryrun"
)

var pods = schema.GroupResource{Resource: "pods"}

// answering returns a client whose API server answers every creation with the error, and the number of creations.
func answering(t *testing.T, answer *error) (client.Client, *int) {
	t.Helper()
	asked := 0
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
			asked++
			if o := (client.CreateOptions{}); len(o.ApplyOptions(opts).DryRun) != 1 {
				t.Error("a pod is created, and not in a dry run")
			}
			return *answer
		},
	}).Build(), &asked
}

func status(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

func TestTry(t *testing.T) {
	terminating := apierrors.NewForbidden(pods, "e-0-0", errors.New("namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		reason           string
		answer           error
		refused, unknown bool
	}{
		"Accepted":       {"the pod could be created", nil, false, false},
		"Exists":         {"the name is checked last", apierrors.NewAlreadyExists(pods, "e-0-0"), false, false},
		"Quota":          {"a deleted pod frees quota", apierrors.NewForbidden(pods, "e-0-0", errors.New("exceeded quota: one")), false, false},
		"SideEffects":    {"nothing is known of such a webhook", apierrors.NewBadRequest(`admission webhook "x" does not support dry run`), false, false},
		"ServiceAccount": {"an admission plugin refuses it", apierrors.NewForbidden(pods, "e-0-0", errors.New(`service account "none" not found`)), true, false},
		"Invalid":        {"so does the validation", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "e-0-0", nil), true, false},
		"Webhook":        {"and a webhook, with any status", status(http.StatusTeapot, `admission webhook "x" denied the request: no`), true, false},
		"WebhookForbids": {"also without details", status(http.StatusForbidden, `admission webhook "x" denied the request: no`), true, false},
		"WebhookDefault": {"400 is the default", status(http.StatusBadRequest, `admission webhook "x" denied the request without explanation`), true, false},
		"Policy":         {"and an admission policy", status(http.StatusUnauthorized, "ValidatingAdmissionPolicy 'x' denied request: no"), true, false},
		"NoRight":        {"the operator may not create pods", apierrors.NewForbidden(pods, "", errors.New(`User "governor" cannot create resource "pods"`)), false, true},
		"Leaving":        {"the namespace is the reason", terminating, false, true},
		"WebhookDown":    {"a webhook does not answer", apierrors.NewInternalError(errors.New("failed calling webhook")), false, true},
		"Away":           {"the API server does not answer", context.DeadlineExceeded, false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			api, _ := answering(t, &c.answer)
			v := dryrun.Try(t.Context(), api, "a", &corev1.Pod{})
			if v.Refuses("a") != c.refused || v.IsUnknown("a") != c.unknown || v.Refuses("b") || v.IsUnknown("b") {
				t.Errorf("%s: %+v", c.reason, v)
			}
		})
	}
}

// An accepted template is asked for once in a minute, a refused one each time.
func TestAcceptedTemplateIsRemembered(t *testing.T) {
	var answer error
	api, asked := answering(t, &answer)
	now := time.Unix(0, 0)
	templates := dryrun.New(func() time.Time { return now })
	for _, step := range []struct {
		owner, template string
		later           time.Duration
		answer          error
		asked           int
	}{
		{"u", "a", 0, nil, 1}, {"u", "a", 0, nil, 1}, {"v", "a", 0, nil, 2}, {"u", "b", 0, nil, 3},
		{"u", "b", time.Minute, nil, 4}, {"u", "c", 0, apierrors.NewBadRequest("no"), 5}, {"u", "c", 0, nil, 6}, {"u", "c", 0, nil, 6},
	} {
		now, answer = now.Add(step.later), step.answer
		v := templates.Try(t.Context(), api, types.UID(step.owner), step.template, &corev1.Pod{})
		if *asked != step.asked || v.Refuses(step.template) != (step.answer != nil) {
			t.Errorf("%+v: asked %d times, %+v", step, *asked, v)
		}
	}
}
