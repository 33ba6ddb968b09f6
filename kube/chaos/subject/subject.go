// Package subject is an instance of an application as a chaos experiment sees it: through
// the Kubernetes API, with the rights of the user who runs the experiment.
package subject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
	"github.com/governor-dev/governor/lifecycle/history"
)

// Experiment is what the subjects of one experiment share.
type Experiment struct {
	// Client has the rights of the user. Its scheme knows Kubernetes' own kinds and
	// Governor's policies.
	Client client.Client
	// User is the name of the user as the API server knows it, Reason why the user does it.
	User, Reason string
	// Manager is the field manager of all writes.
	Manager string
	// Seed is that of the experiment, and Budget its number of acts, for events.
	Seed   uint64
	Budget int
	Now    func() time.Time
	// ID tells the experiment from others, and Longest is how long one act of another experiment
	// is taken to be under way that was announced and not ended.
	ID      string
	Longest time.Duration
}

// Subject implements experiment.Instance.
type Subject struct {
	*Experiment

	does.Instance

	uid types.UID
	app string
}

// Of returns the subject of the custom resource.
func (e *Experiment) Of(ctx context.Context, object *unstructured.Unstructured) (*Subject, error) {
	s := &Subject{Experiment: e, uid: object.GetUID()}
	s.Instance = does.Instance{
		Kind: object.GroupVersionKind(), Key: client.ObjectKeyFromObject(object), Manager: e.Manager, Spare: s.spare,
	}
	var err error
	s.app, err = s.findApp(ctx)
	return s, err
}

// String is TYPE/NAME.
func (s *Subject) String() string { return strings.ToLower(s.Kind.Kind) + "/" + s.Key.Name }

// findApp returns the application's name, from an object that the instance controls. It
// tells the objects of the instance from those of another kind's instance of the name.
func (s *Subject) findApp(ctx context.Context) (string, error) {
	for _, kind := range []chaos.Object{chaos.StatefulSet, chaos.Deployment, chaos.PodDisruptionBudget, chaos.Pod, chaos.ConfigMap} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind.APIVersion)
		list.SetKind(kind.Kind + "List")
		if err := s.Client.List(ctx, list, client.InNamespace(s.Key.Namespace), s.labels()); err != nil {
			return "", err
		}
		for i := range list.Items {
			o := &list.Items[i]
			if c := metav1.GetControllerOf(o); c != nil && c.UID == s.uid && o.GetLabels()[lifecycle.LabelApp] != "" {
				return o.GetLabels()[lifecycle.LabelApp], nil
			}
		}
	}
	return "", fmt.Errorf("%s has no object with the label %s: there is nothing to do an experiment with", s, lifecycle.LabelApp)
}

func (s *Subject) labels() client.MatchingLabels {
	return client.MatchingLabels{lifecycle.LabelInstance: s.Key.Name}
}

// spare keeps the history, and what belongs to an instance of another kind.
func (s *Subject) spare(o *unstructured.Unstructured) bool {
	return o.GetName() == history.Name(s.Kind.Kind, s.Key.Name) || !s.mine(o)
}

// mine reports whether the object belongs to this instance, and not to one of another kind. An
// object without a controller may be a user's copy, which is never restored.
func (s *Subject) mine(o client.Object) bool {
	c := metav1.GetControllerOf(o)
	if c == nil || c.UID == s.uid {
		return c != nil
	}
	return o.GetLabels()[lifecycle.LabelApp] == s.app && o.GetLabels()[lifecycle.LabelInstance] == s.Key.Name
}

// Names implements experiment.Instance.
func (s *Subject) Names(ctx context.Context, m chaos.Manipulation, target int) ([]string, error) {
	found, err := s.targets(ctx, m, target)
	var names []string
	for i := range found {
		names = append(names, found[i].GetName())
	}
	return names, err
}

// targets are the objects that [does.Instance.Do] touches.
func (s *Subject) targets(ctx context.Context, m chaos.Manipulation, target int) ([]unstructured.Unstructured, error) {
	found, err := s.Find(ctx, s.Client, m.Object)
	switch {
	case err != nil:
		return nil, impossible(err)
	case len(found) == 0:
		return nil, fmt.Errorf("%w: it has no %s", experiment.ErrImpossible, m.Object.Kind)
	case m.All:
		return found, nil
	}
	n := target % len(found)
	return found[n : n+1], nil
}

// Do implements experiment.Instance.
func (s *Subject) Do(ctx context.Context, m chaos.Manipulation, target int) (experiment.Done, error) {
	before, err := s.targets(ctx, m, target)
	if err != nil {
		return experiment.Done{}, err
	}
	did, err := s.Instance.Do(ctx, s.Client, m, target)
	done := experiment.Done{Objects: did.Objects, Undo: did.Undo}
	done.Healed = func(ctx context.Context) (bool, error) { return s.healed(ctx, m, before) }
	return done, impossible(err)
}

// impossible tells errors after which another manipulation is tried from those that end
// the experiment.
func impossible(err error) error {
	no := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err) ||
		errors.Is(err, does.ErrNothing) || errors.Is(err, does.ErrNoAPI)
	if no {
		return fmt.Errorf("%w: %w", experiment.ErrImpossible, err)
	}
	return err
}

// Steps implements experiment.Instance.
func (s *Subject) Steps(ctx context.Context, since time.Time) ([]string, error) {
	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion(chaos.ConfigMap.APIVersion)
	raw.SetKind(chaos.ConfigMap.Kind)
	key := client.ObjectKey{Namespace: s.Key.Namespace, Name: history.Name(s.Kind.Kind, s.Key.Name)}
	if err := s.Client.Get(ctx, key, raw); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	text, _, err := unstructured.NestedString(raw.Object, "data", history.Key)
	if err != nil {
		return nil, err
	}
	book, err := history.Decode(text)
	if err != nil {
		return nil, err
	}
	var steps []string
	for _, e := range book.Entries {
		if !e.Latest().Before(since) {
			steps = append(steps, fmt.Sprintf("%s (%s, %s)", e.Step, cmp.Or(e.Step.Reason, string(e.Step.Cause)), e.Result))
		}
	}
	return steps, nil
}
