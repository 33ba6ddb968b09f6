package fakeapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// Lists stores the member list of every ring. It survives the operator, and it is safe for
// concurrent use.
type Lists struct {
	mu      sync.Mutex
	rings   map[types.UID]World
	refusal error
	refused int
	// observed counts the observations of each ring.
	observed map[types.UID]int
}

// NewLists returns an empty Lists.
func NewLists() *Lists {
	return &Lists{rings: map[types.UID]World{}, observed: map[types.UID]int{}}
}

// Refuse makes every later change of a member list fail with the error. A nil error ends
// that.
func (l *Lists) Refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusal = err
}

// Refused returns how many changes have failed.
func (l *Lists) Refused() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Observed returns how often the driver has observed the ring.
func (l *Lists) Observed(id types.UID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.observed[id]
}

func (l *Lists) observe(id types.UID) World {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observed[id]++
	return l.rings[id].copy()
}

func (l *Lists) set(id types.UID, name string, revision int, to Member) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.rings[id]
	if l.refusal != nil {
		l.refused++
		return l.refusal
	}
	if w.Revision != revision {
		return errStale
	}
	if !slices.ContainsFunc(w.Members, func(m Member) bool { return m.Name == name }) {
		w.Next++
	}
	w = w.change(name, func(m *Member) { m.Listed, m.Voter = to.Listed, to.Voter })
	w.Revision++
	l.rings[id] = w
	return nil
}

// MemberLabel marks the ConfigMaps that stand for pods.
const MemberLabel = "ring.test.governor.dev/member"

// healthKey is the ConfigMap key with the health of the pod.
const healthKey = "health"

type driver struct {
	client client.Client
	lists  *Lists
}

// NewDriver returns the constructor of a driver that uses the member lists.
func NewDriver(lists *Lists) func(kube.Access) lifecycle.Driver[*Ring, World] {
	return func(a kube.Access) lifecycle.Driver[*Ring, World] {
		return driver{client: a.Client, lists: lists}
	}
}

// Observe implements lifecycle.Driver. It combines both systems into one world.
func (d driver) Observe(ctx context.Context, r *Ring) (World, error) {
	w := d.lists.observe(r.UID)
	pods := &corev1.ConfigMapList{}
	err := d.client.List(ctx, pods, client.InNamespace(r.Namespace),
		client.MatchingLabels{lifecycle.LabelInstance: r.Name}, client.HasLabels{MemberLabel})
	if err != nil {
		return World{}, fmt.Errorf("cannot list pods: %w", err)
	}
	for _, p := range pods.Items {
		w = w.change(p.Labels[MemberLabel], func(m *Member) { m.Pod = Health(p.Data[healthKey]) })
	}
	slices.SortFunc(w.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return w, nil
}

// Act implements lifecycle.Driver.
func (d driver) Act(ctx context.Context, r *Ring, seen World, s lifecycle.Step) error {
	list := func(to Member) error { return d.lists.set(r.UID, s.Target, seen.Revision, to) }
	switch s.Name {
	case "Add":
		first := seen.count(listed) == 0
		return inOrder(list(Member{Listed: true, Voter: first}), func() error { return d.createPod(ctx, r, s.Target) })
	case "CreatePod":
		return d.createPod(ctx, r, s.Target)
	case "Promote":
		return list(Member{Listed: true, Voter: true})
	case "Remove":
		return inOrder(list(Member{}), func() error { return d.deletePod(ctx, r, s.Target) })
	case "DeletePod":
		return d.deletePod(ctx, r, s.Target)
	}
	return errors.New("unknown step " + s.Name)
}

func podOf(r *Ring, member string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name + "-" + member, Namespace: r.Namespace,
			Labels:          map[string]string{MemberLabel: member},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r, GroupVersion.WithKind("Ring"))},
		},
		Data: map[string]string{healthKey: string(Healthy)},
	}
}

func (d driver) createPod(ctx context.Context, r *Ring, member string) error {
	return d.client.Create(ctx, podOf(r, member))
}

func (d driver) deletePod(ctx context.Context, r *Ring, member string) error {
	pod := podOf(r, member)
	err := d.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	if err == nil {
		err = d.client.Delete(ctx, pod)
	}
	return client.IgnoreNotFound(err)
}
