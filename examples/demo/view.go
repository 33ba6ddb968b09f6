package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
)

// view is what can be seen of the application at one moment.
type view struct {
	object cachev1.Memcached
	pods   []corev1.Pod
	events []eventsv1.Event
}

// allAnswer holds when the operator says that so many servers are as declared, and so many pods are ready.
func allAnswer(size int32) func(view) bool {
	return func(v view) bool {
		ready := apimeta.FindStatusCondition(v.object.Status.Conditions, "Ready")
		return ready != nil && ready.Status == "True" && ready.ObservedGeneration == v.object.Generation &&
			v.object.Status.ReadyReplicas == size && len(v.running()) == int(size)
	}
}

// allRun holds when, besides, every pod runs that version.
func allRun(version string, size int32) func(view) bool {
	return func(v view) bool {
		for _, p := range v.pods {
			if !strings.HasSuffix(p.Spec.Containers[0].Image, ":"+version) {
				return false
			}
		}
		return allAnswer(size)(v)
	}
}

// repaired holds when all answer again and the operator has said that it repaired something.
func repaired(size int32) func(view) bool {
	return func(v view) bool {
		told := slices.ContainsFunc(v.events, func(e eventsv1.Event) bool { return e.Action == "Repair" })
		return told && allRun("1.6.18", size)(v)
	}
}

// running are the pods that are ready and will stay.
func (v view) running() []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(v.pods), func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || !podReady(p)
	})
}

func podReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// stage is where the scenes are played: a watched namespace.
type stage struct {
	cache   cache.Cache
	changed chan struct{}
	screen  screen
}

func open(ctx context.Context) (*stage, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{cachev1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	watched, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		return nil, err
	}
	s := &stage{cache: watched, changed: make(chan struct{}, 1), screen: newScreen()}
	go func() { _ = watched.Start(ctx) }()
	return s, s.watch(ctx)
}

func (s *stage) watch(ctx context.Context) error {
	notify := func(any) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	for _, kind := range []client.Object{&cachev1.Memcached{}, &corev1.Pod{}, &eventsv1.Event{}} {
		informer, err := s.cache.GetInformer(ctx, kind)
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(_, o any) { notify(o) },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) look(ctx context.Context) (v view) {
	var pods corev1.PodList
	var events eventsv1.EventList
	// Before the object is there, an empty view is the truth.
	_ = s.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v.object)
	_ = s.cache.List(ctx, &pods, client.MatchingLabels{"app.kubernetes.io/instance": name})
	_ = s.cache.List(ctx, &events)
	v.pods = pods.Items
	slices.SortFunc(v.pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, e := range events.Items {
		if e.Regarding.Kind == "Memcached" && e.Regarding.Name == name {
			v.events = append(v.events, e)
		}
	}
	slices.SortFunc(v.events, func(a, b eventsv1.Event) int { return when(a).Compare(when(b)) })
	return v
}

func when(e eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}
