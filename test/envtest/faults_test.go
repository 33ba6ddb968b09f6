package envtest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// A user writes the object between the operator's read and its status update. The user's
// change stays, and the status is updated all the same.
func TestStatusUpdateRetriesAfterConflict(t *testing.T) {
	namespace := newNamespace(t)
	var conflicts atomic.Int64
	op := startOperatorIn(t, setting{meddle: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/memcacheds/m/status") && conflicts.Load() < 3 {
			label(t, namespace, fmt.Sprintf("edit-%d", conflicts.Load()))
		}
		answer, err := next.RoundTrip(r)
		if err == nil && answer.StatusCode == http.StatusConflict && strings.HasSuffix(r.URL.Path, "/status") {
			conflicts.Add(1)
		}
		return answer, err
	}}, namespace)
	newMemcached(t, namespace, "m", 1)
	reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionFalse, "RollingOut")
	playKubernetes(t, namespace, "m")
	m := reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	if n := conflicts.Load(); n != 3 || len(m.Labels) != 3 {
		t.Errorf("%d conflicts, the labels are %v; want 3 of each", n, m.Labels)
	}
	quiet(t, namespace, op)
	for _, line := range twice(op.since(0)) {
		t.Errorf("done twice: %s", line)
	}
}

// The engine's own records (history, revisions) may be forbidden, as for an operator
// without the permission. The status is updated all the same.
func TestStatusIsWrittenIfRecordsAreForbidden(t *testing.T) {
	namespace := newNamespace(t)
	var refused atomic.Int64
	startOperatorIn(t, setting{meddle: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/controllerrevisions") {
			refused.Add(1)
			return &http.Response{
				StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)),
			}, nil
		}
		return next.RoundTrip(r)
	}}, namespace)
	newMemcached(t, namespace, "m", 1)
	playKubernetes(t, namespace, "m")
	reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	if refused.Load() == 0 {
		t.Error("nothing was refused")
	}
}

func label(t *testing.T, namespace, key string) {
	m, err := get(t, &cachev1.Memcached{}, namespace, "m")
	if err == nil {
		base := m.DeepCopy()
		metav1.SetMetaDataLabel(&m.ObjectMeta, key, "yes")
		err = api.Patch(t.Context(), m, client.MergeFrom(base))
	}
	if err != nil {
		t.Error(err)
	}
}

// twice returns the writes of children that were made more than once.
func twice(wrote []string) []string {
	seen, again := map[string]int{}, []string{}
	for _, line := range wrote {
		if seen[line]++; child(line) && seen[line] == 2 {
			again = append(again, line)
		}
	}
	return again
}

// child reports whether the line is a write of an object that memcached owns.
func child(line string) bool {
	for _, kind := range []string{"/services/", "/deployments/", "/poddisruptionbudgets/"} {
		if strings.Contains(line, kind) {
			return true
		}
	}
	return false
}

// An operator whose watches are cut receives no event. Afterwards it makes up for what it
// missed, once.
func TestLostWatches(t *testing.T) {
	namespace := newNamespace(t)
	line := newLink(t)
	op := startOperatorIn(t, setting{host: line.host()}, namespace)
	newMemcached(t, namespace, "old", 1)
	playKubernetes(t, namespace, "old")
	old := reaches(t, namespace, "old", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	quiet(t, namespace, op)
	before := op.writes.Load()
	line.sever(true)
	eventually(t, "the operator misses the API server", func() error { return atLeast(line.refused.Load(), 1) })
	svc, err := get(t, &corev1.Service{}, namespace, "old")
	must(t, err)
	must(t, api.Delete(t.Context(), svc))
	old.Spec.Size = 2
	must(t, api.Update(t.Context(), old))
	newMemcached(t, namespace, "new", 1)
	line.sever(false)
	playKubernetes(t, namespace, "new")
	eventually(t, "the change is applied", func() error { return replicas(t, namespace, "old", 2) })
	playKubernetes(t, namespace, "old")
	for _, name := range []string{"old", "new"} {
		reaches(t, namespace, name, lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	}
	_, err = get(t, &corev1.Service{}, namespace, "old")
	must(t, err)
	quiet(t, namespace, op)
	wrote := op.since(before)
	for _, line := range twice(wrote) {
		t.Errorf("done twice: %s", line)
	}
	t.Logf("%d writes: %q", len(wrote), wrote)
}

func atLeast(got, want int64) error {
	if got < want {
		return fmt.Errorf("%w: %d of %d", errNotYet, got, want)
	}
	return nil
}

func replicas(t *testing.T, namespace, name string, want int32) error {
	dep, err := get(t, &appsv1.Deployment{}, namespace, name)
	if err == nil && *dep.Spec.Replicas != want {
		err = fmt.Errorf("%w: replicas %d", errNotYet, *dep.Spec.Replicas)
	}
	return err
}

// While only the watches are cut, an operator can write but does not see its writes. It
// takes no further step before it does.
func TestNoStepWithoutWatches(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	b := &blindfold{subject: "/configmaps/r-m000001"}
	op := startOperatorIn(t, setting{meddle: b.pass}, namespace)
	newRing(t, namespace, "r", 1)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	quiet(t, namespace, op)
	before := op.writes.Load()
	b.armed.Store(true)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 3 })
	eventually(t, "in doubt it asks the API server", func() error { return atLeast(b.asked.Load(), 5) })
	b.off.Store(true)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	made := slices.DeleteFunc(op.since(before), func(s string) bool { return s != "POST /api/v1/namespaces/"+namespace+"/configmaps" })
	if len(made) != 2 {
		t.Errorf("%d pods were made, want 2", len(made))
	}
}

// blindfold, once armed, cuts the watches when the operator creates a ConfigMap, and
// refuses new ones until it is off. All other requests pass.
type blindfold struct {
	subject string // the end of a path, whose requests are counted
	asked   atomic.Int64

	armed, on, off atomic.Bool

	views views
}

// views are the responses to lists and watches that clients may still read.
type views struct {
	mu   sync.Mutex
	open []io.Closer
}

// look sends the request and keeps the response.
func (v *views) look(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	if err == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.open = append(v.open, answer.Body)
	}
	return answer, err
}

// cut closes all responses.
func (v *views) cut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, body := range v.open {
		_ = body.Close()
	}
}

func (b *blindfold) pass(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if b.armed.Load() && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") {
		b.putOn()
	}
	if strings.HasSuffix(r.URL.Path, b.subject) {
		b.asked.Add(1)
	}
	if r.Method != http.MethodGet || r.URL.RawQuery == "" {
		return next.RoundTrip(r) // only lists and watches have a query
	}
	if b.on.Load() && !b.off.Load() {
		return nil, errors.New("nothing can be seen")
	}
	return b.views.look(r, next)
}

func (b *blindfold) putOn() {
	if !b.on.Swap(true) {
		b.views.cut()
	}
}

// A write with a lost response took effect all the same. The operator cannot know that,
// and must not take the step twice.
func TestLostResponses(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	var n, lost atomic.Int64
	startOperatorIn(t, setting{meddle: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil || r.Method == http.MethodGet || n.Add(1)%3 != 0 {
			return answer, err
		}
		lost.Add(1)
		return nil, errors.Join(errors.New("the answer is lost"), answer.Body.Close())
	}}, namespace)
	newRing(t, namespace, "r", 5)
	r := ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	// Names are never reused, so a second creation of a member would have used one more name.
	if want := []string{"m000000", "m000001", "m000002", "m000003", "m000004"}; !slices.Equal(r.Status.Members, want) {
		t.Errorf("members are %v, want %v", r.Status.Members, want)
	}
	if n := pods(t, namespace); n != 5 {
		t.Errorf("there are %d pods, want 5", n)
	}
	must(t, atLeast(lost.Load(), 5))
	t.Logf("%d answers were lost", lost.Load())
}

// pods counts the ConfigMaps that stand for pods of rings.
func pods(t *testing.T, namespace string) int {
	t.Helper()
	list := &corev1.ConfigMapList{}
	must(t, api.List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{fakeapp.MemberLabel}))
	return len(list.Items)
}
