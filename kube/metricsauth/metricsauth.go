// Package metricsauth serves metrics only to callers that may read them. The API server
// decides: a TokenReview says whose bearer token it is, and a SubjectAccessReview whether
// that user may get the path.
//
// The filter of controller-runtime does the same. It links k8s.io/apiserver with CEL and
// OpenTelemetry into the operator, for two questions.
package metricsauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// askWithin is how long the API server may take to answer both questions.
	askWithin = 10 * time.Second
	// allowedFor and refusedFor are how long an answer holds: a scraper comes every few
	// seconds, and somebody who has just got the right does not want to wait.
	allowedFor = time.Minute
	refusedFor = 5 * time.Second
	// mostAnswers bounds the memory that callers with made-up tokens can take.
	mostAnswers = 512
)

// Provider makes the filter for the metrics server of a manager.
func Provider(now clock.PassiveClock) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(cfg *rest.Config, c *http.Client) (metricsserver.Filter, error) {
		tokens, err := authenticationclient.NewForConfigAndClient(cfg, c)
		if err != nil {
			return nil, fmt.Errorf("cannot check who reads metrics: %w", err)
		}
		access, err := authorizationclient.NewForConfigAndClient(cfg, c)
		if err != nil {
			return nil, fmt.Errorf("cannot check who reads metrics: %w", err)
		}
		g := &guard{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), now: now, known: map[question]answer{}}
		return g.filter, nil
	}
}

// guard remembers answers. It is safe for concurrent use.
type guard struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	now    clock.PassiveClock

	mu    sync.Mutex
	known map[question]answer
}

// question is a caller who wants something; the token itself is not kept.
type question struct {
	token        [sha256.Size]byte
	method, path string
}

// answer is an HTTP status, and until when it holds.
type answer struct {
	status int
	until  time.Time
}

// filter implements metricsserver.Filter.
func (g *guard) filter(log logr.Logger, metrics http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := g.judge(r)
		switch {
		case err != nil:
			log.Error(err, "cannot check who reads metrics; the operator needs the right to create tokenreviews and subjectaccessreviews, "+
				"or the flag --metrics-secure=false")
			http.Error(w, "the API server does not say who may read metrics", http.StatusInternalServerError)
		case status == http.StatusOK:
			metrics.ServeHTTP(w, r)
		default:
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, http.StatusText(status), status)
		}
	}), nil
}

// judge answers from memory where it can.
func (g *guard) judge(r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	q := question{sha256.Sum256([]byte(token)), strings.ToLower(r.Method), r.URL.Path}
	if status, ok := g.remembered(q); ok {
		return status, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	status, err := g.ask(ctx, token, q)
	if err == nil {
		g.remember(q, status)
	}
	return status, err
}

// ask has the API server say who it is and whether that user may.
func (g *guard) ask(ctx context.Context, token string, q question) (int, error) {
	who, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := g.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: q.method, Path: q.path},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (g *guard) remembered(q question) (int, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.known[q]
	return a.status, ok && g.now.Now().Before(a.until)
}

func (g *guard) remember(q question, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now.Now()
	if len(g.known) >= mostAnswers {
		maps.DeleteFunc(g.known, func(_ question, a answer) bool { return !now.Before(a.until) })
	}
	if len(g.known) >= mostAnswers {
		return
	}
	holds := refusedFor
	if status == http.StatusOK {
		holds = allowedFor
	}
	g.known[q] = answer{status, now.Add(holds)}
}
