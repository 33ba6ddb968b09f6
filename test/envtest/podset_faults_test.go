package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/apps/podset/contract"
	"github.com/governor-dev/governor/lifecycle"
)

// watchCount watches the pods of a namespace, and records the maximum at a time.
func watchCount(t *testing.T, namespace string) (most func() int) {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	must(t, err)
	var mu sync.Mutex
	there, highest := map[string]bool{}, 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			mu.Lock()
			if delete(there, p.Name); e.Type != "DELETED" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed {
				there[p.Name] = true
			}
			highest = max(highest, len(there))
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { cancel(); w.Stop(); <-done })
	return func() int { mu.Lock(); defer mu.Unlock(); return highest }
}

// neverMoreThan checks the maximum once the set has settled.
func neverMoreThan(t *testing.T, s *sets, size int32, most func() int) {
	t.Helper()
	eventually(t, "the set is whole", func() error {
		if st := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable").Status; st.Replicas != size {
			return fmt.Errorf("the status shows %d pods", st.Replicas)
		}
		return nil
	})
	quiet(t, s.namespace, s.op)
	if n := len(s.Owners(t)); n != int(size) || most() > int(size) {
		t.Errorf("there are %d pods, and were %d at a time; %d are wanted", n, most(), size)
	}
}

// Creations with lost responses are not repeated.
func TestPodSetLostResponses(t *testing.T) {
	s := &sets{namespace: newNamespace(t)}
	kubelets(t, s.namespace)
	most := watchCount(t, s.namespace)
	var n, lost atomic.Int64
	s.op = startOperatorIn(t, setting{meddle: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/pods") || n.Add(1)%5 != 0 {
			return answer, err
		}
		lost.Add(1)
		return nil, errors.Join(errors.New("the answer is lost"), answer.Body.Close())
	}}, s.namespace)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 30 })
	neverMoreThan(t, s, 30, most)
	must(t, atLeast(lost.Load(), 3))
}

// While the cache lacks the pods that another operator created, as after a change of the
// leader, no pod is created again, under any name.
func TestPodSetWithStaleCache(t *testing.T) {
	s := &sets{namespace: newNamespace(t)}
	kubelets(t, s.namespace)
	most := watchCount(t, s.namespace)
	b := &blindToPods{}
	s.op = startOperatorIn(t, setting{meddle: b.pass}, s.namespace)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 5 })
	s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	quiet(t, s.namespace, s.op)
	b.blind()
	owner, err := get(t, &appv1.PodSet{}, s.namespace, contract.Set)
	must(t, err)
	for i := range 5 {
		p := barePod(s.namespace, fmt.Sprintf("%s-%d", contract.Set, 20+i), podset.Selector(contract.Set))
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, podset.Kind)}
		must(t, api.Create(t.Context(), p))
	}
	asked := b.asked.Load()
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 10 })
	eventually(t, "it finds that its cache is old", func() error { return atLeast(b.asked.Load(), asked+3) })
	b.off.Store(true)
	neverMoreThan(t, s, 10, most)
}

// blindToPods cuts the watches of pods; direct requests are answered.
type blindToPods struct {
	on, off atomic.Bool
	asked   atomic.Int64 // direct lists

	views views
}

func (b *blindToPods) blind() {
	b.on.Store(true)
	b.views.cut()
}

func (b *blindToPods) pass(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/pods") {
		return next.RoundTrip(r)
	}
	if strings.Contains(r.URL.Query().Get("labelSelector"), contract.Set) {
		b.asked.Add(1)
		return next.RoundTrip(r)
	}
	if b.on.Load() && !b.off.Load() {
		return nil, errors.New("nothing can be seen")
	}
	return b.views.look(r, next)
}

// Operators start and stop while a set scales, and each starts before the last one has
// ended. They create no excess pod.
func TestPodSetUnderChangingLeaders(t *testing.T) {
	s := &sets{namespace: newNamespace(t)}
	kubelets(t, s.namespace)
	most := watchCount(t, s.namespace)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 60 })
	for i := range 4 {
		s.op = startOperator(t, s.namespace)
		eventually(t, "some pods are made", func() error { return atLeast(int64(len(s.Owners(t))), int64(10*(i+1))) })
		go s.op.stop()
	}
	s.op = startOperator(t, s.namespace)
	neverMoreThan(t, s, 60, most)
}
