// Package dryrun finds out whether the API server accepts pods of a template, before a pod is
// deleted for it.
package dryrun

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// acceptedTTL is how long an accepted template needs no new dry run.
const acceptedTTL = time.Minute

// Templates remembers, per owner, the template that the API server accepted last. A refusal is
// not remembered: the user may create the missing object at any time.
type Templates struct {
	now     func() time.Time
	mu      sync.Mutex
	entries map[types.UID]accepted
}

type accepted struct {
	template string
	at       time.Time
}

// New returns an empty memory.
func New(now func() time.Time) *Templates {
	return &Templates{now: now, entries: map[types.UID]accepted{}}
}

// Try runs a dry run of the pod, unless the template was accepted recently.
func (t *Templates) Try(ctx context.Context, c client.Client, owner types.UID, template string, pod *corev1.Pod) lifecycle.TemplateVerdict {
	if t.has(owner, template) {
		return lifecycle.TemplateVerdict{Template: template}
	}
	v := Try(ctx, c, template, pod)
	if v.Refusal == "" && v.Unknown == "" {
		t.record(owner, template)
	}
	return v
}

func (t *Templates) has(owner types.UID, template string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.entries[owner]
	return ok && known.template == template && t.now().Sub(known.at) < acceptedTTL
}

func (t *Templates) record(owner types.UID, template string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, known := range t.entries {
		if t.now().Sub(known.at) >= acceptedTTL {
			delete(t.entries, other)
		}
	}
	t.entries[owner] = accepted{template, t.now()}
}

// Try runs a dry run of the pod. It may have the name of an existing pod: the API server admits and
// validates a pod before it finds that the name is taken (apiserver, registry/generic/registry,
// Store.Create).
func Try(ctx context.Context, c client.Client, template string, pod *corev1.Pod) lifecycle.TemplateVerdict {
	v := lifecycle.TemplateVerdict{Template: template}
	err := c.Create(ctx, pod, client.DryRunAll)
	switch {
	case accepts(err):
	case rejects(err):
		v.Refusal = words(err)
	default:
		v.Unknown = words(err)
	}
	return v
}

// accepts reports whether the template is no reason against the pod. A deleted pod frees quota, but
// not more than there is. A webhook with side effects cannot be part of a dry run, so nothing is known
// of it, ever.
func accepts(err error) bool {
	return err == nil || apierrors.IsAlreadyExists(err) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") && !exceedsWholeQuota(err.Error()) ||
		Unsupported(err)
}

// Unsupported reports whether a webhook with side effects keeps the API server from a dry run.
func Unsupported(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// rejects reports whether the error is about this pod. A webhook denies with a status code of its
// choice. An error without the pod's name denies Governor the right to create pods.
func rejects(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	s := answer.Status()
	switch s.Code {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return true
	case http.StatusForbidden:
		return s.Details != nil && s.Details.Name != "" || denied(err)
	}
	return denied(err)
}

// denied recognizes the denial of a webhook, and that of a ValidatingAdmissionPolicy.
func denied(err error) bool {
	return strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request")
}

func words(err error) string { return strings.TrimSuffix(err.Error(), ".") }
