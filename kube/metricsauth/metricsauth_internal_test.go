package metricsauth

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// apiServer knows the token "good" of an authorized user, and "weak" of an unauthorized
// one.
func apiServer(reviews *int, down *bool) *fake.Clientset {
	c := fake.NewClientset()
	c.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if *reviews++; *down {
			return true, nil, errors.New("away")
		}
		review := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		review.Status.Authenticated = review.Spec.Token == "good" || review.Spec.Token == "weak"
		review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token, Groups: []string{"g"}, UID: "u",
			Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
		return true, review, nil
	})
	c.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		s := review.Spec
		review.Status.Allowed = s.User == "good" && len(s.Groups) == 1 && s.UID == "u" && s.Extra["k"][0] == "v" &&
			*s.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		return true, review, nil
	})
	return c
}

func TestFilterAuthorizesAndCaches(t *testing.T) {
	reviews, down := 0, false
	c, now := apiServer(&reviews, &down), clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	g := &authorizer{tokens: c.AuthenticationV1().TokenReviews(), access: c.AuthorizationV1().SubjectAccessReviews(), now: now, answers: map[cacheKey]answer{}}
	handler, err := g.filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	if err != nil {
		t.Fatal(err)
	}
	get := func(method, path, token string) int {
		r, w := httptest.NewRequestWithContext(t.Context(), method, path, nil), httptest.NewRecorder()
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		handler.ServeHTTP(w, r)
		return w.Code
	}
	steps := []struct {
		reason              string
		later               time.Duration
		down                bool
		method, path, token string
		status, reviews     int
	}{
		{"an authorized caller is allowed", 0, false, http.MethodGet, "/metrics", "good", 200, 1},
		{"the answer is cached", 59 * time.Second, true, http.MethodGet, "/metrics", "good", 200, 0},
		{"the answer is valid for that path only", 0, false, http.MethodGet, "/debug", "good", 403, 1},
		{"the answer is valid for that verb only", 0, false, http.MethodPost, "/metrics", "good", 403, 1},
		{"the answer expires after a minute", time.Second, false, http.MethodGet, "/metrics", "good", 200, 1},
		{"an unauthorized user is refused", 0, false, http.MethodGet, "/metrics", "weak", 403, 1},
		{"an unknown token is refused", 0, false, http.MethodGet, "/metrics", "made up", 401, 1},
		{"a refusal is cached for five seconds", 4 * time.Second, true, http.MethodGet, "/metrics", "made up", 401, 0},
		{"the refusal has expired", time.Second, false, http.MethodGet, "/metrics", "made up", 401, 1},
		{"a request without a token sends no review", 0, false, http.MethodGet, "/metrics", "", 401, 0},
		{"an outage refuses every caller", time.Hour, true, http.MethodGet, "/metrics", "good", 500, 1},
		{"an error is not cached", 0, false, http.MethodGet, "/metrics", "good", 200, 1},
	}
	for _, s := range steps {
		now.SetTime(now.Now().Add(s.later))
		reviews, down = 0, s.down
		if status := get(s.method, s.path, s.token); status != s.status || reviews != s.reviews {
			t.Errorf("%s: status %d after %d reviews, want %d after %d", s.reason, status, reviews, s.status, s.reviews)
		}
	}
	for i := range 2 * maxAnswers {
		get(http.MethodGet, "/metrics", fmt.Sprintf("guess %d", i))
	}
	if len(g.answers) > maxAnswers {
		t.Errorf("%d answers are kept", len(g.answers))
	}
}

// A caller with made-up tokens cannot flood the API server: few reviews are under way at once.
func TestFilterBoundsReviewsUnderWay(t *testing.T) {
	const callers = 100
	var decided sync.WaitGroup // at the API server, or refused before it
	decided.Add(callers)
	var underWay, most atomic.Int32
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := underWay.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		decided.Done()
		<-released
		underWay.Add(-1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"}`)
	}))
	defer server.Close()
	filter, err := Provider(clock.RealClock{})(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	get := func(token string) int {
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+token)
		handler.ServeHTTP(w, r)
		return w.Code
	}
	var ended sync.WaitGroup
	var refused atomic.Int32
	for i := range callers {
		ended.Go(func() {
			if get(fmt.Sprintf("guess %d", i)) == http.StatusTooManyRequests {
				refused.Add(1)
				decided.Done()
			}
		})
	}
	decided.Wait()
	close(released)
	ended.Wait()
	if most.Load() != maxReviews || refused.Load() != callers-maxReviews {
		t.Errorf("%d reviews were under way at once, and %d callers were refused", most.Load(), refused.Load())
	}
	decided.Add(1)
	if status := get("another guess"); status != http.StatusUnauthorized {
		t.Errorf("after the flood, the status is %d", status)
	}
}
