package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// view is what can be seen of the application at one moment.
type view struct {
	object etcdv1.EtcdCluster
	pods   []corev1.Pod
	events []eventsv1.Event
	// written is what a client has seen, once there is one.
	written fmt.Stringer
}

// serve holds when the operator says that so many members serve and all is as declared, and no other pod is left.
func serve(size int) func(before, now view) bool {
	return func(_, v view) bool {
		ready := apimeta.FindStatusCondition(v.object.Status.Conditions, "Ready")
		return ready != nil && ready.Status == "True" && ready.ObservedGeneration == v.object.Generation &&
			int(v.object.Status.ReadyReplicas) == size && len(v.running()) == size && len(v.pods) == size
	}
}

// replaced holds when all serve and the earlier leader is not a member any more.
func replaced(size int) func(before, now view) bool {
	return func(before, v view) bool {
		gone := !slices.ContainsFunc(v.object.Status.Members, func(m etcdv1.MemberStatus) bool { return m.Name == before.object.Status.Leader })
		return gone && serve(size)(before, v)
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
	writer  *consistencyclient.Client
}

func open(ctx context.Context) (*stage, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{etcdv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, discoveryv1.AddToScheme} {
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
	s := &stage{cache: watched, changed: make(chan struct{}, 1), screen: newScreen(os.Stdout)}
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
	for _, kind := range []client.Object{&etcdv1.EtcdCluster{}, &corev1.Pod{}, &eventsv1.Event{}} {
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
		if e.Regarding.Kind == "EtcdCluster" && e.Regarding.Name == name {
			v.events = append(v.events, e)
		}
	}
	slices.SortFunc(v.events, func(a, b eventsv1.Event) int { return when(a).Compare(when(b)) })
	if s.writer != nil {
		v.written = s.writer.Stats()
	}
	return v
}

func when(e eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}
