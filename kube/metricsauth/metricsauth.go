// Package metricsauth serves metrics only to authorized callers. The API server decides: a
// TokenReview authenticates the bearer token, and a SubjectAccessReview authorizes that
// user for the path.
//
// The filter of controller-runtime does the same, but it links k8s.io/apiserver with CEL
// and OpenTelemetry into the operator for two requests.
package metricsauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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
	// reviewTimeout is the timeout of both requests to the API server together.
	reviewTimeout = 10 * time.Second
	// allowedTTL and refusedTTL are how long an answer stays valid. A scraper comes every
	// few seconds. A refusal is short, so that a new permission takes effect soon.
	allowedTTL = time.Minute
	refusedTTL = 5 * time.Second
	// maxAnswers bounds the memory that callers with made-up tokens can use.
	maxAnswers = 512
	// maxReviews bounds the reviews under way. The operator's reconciles and its lease share one
	// flow of the API server with them, and each made-up token costs a review.
	maxReviews = 4
)

// Provider returns the constructor of the filter for the metrics server of a manager.
func Provider(now clock.PassiveClock) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(cfg *rest.Config, c *http.Client) (metricsserver.Filter, error) {
		tokens, err := authenticationclient.NewForConfigAndClient(cfg, c)
		if err != nil {
			return nil, fmt.Errorf("cannot authorize callers of the metrics endpoint: %w", err)
		}
		access, err := authorizationclient.NewForConfigAndClient(cfg, c)
		if err != nil {
			return nil, fmt.Errorf("cannot authorize callers of the metrics endpoint: %w", err)
		}
		g := &authorizer{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), now: now, answers: map[cacheKey]answer{}}
		return g.filter, nil
	}
}

// authorizer caches answers. It is safe for concurrent use.
type authorizer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	now    clock.PassiveClock

	reviews atomic.Int32 // under way

	mu      sync.Mutex
	answers map[cacheKey]answer
}

// cacheKey is a caller and its request. It contains a hash of the token, never the token.
type cacheKey struct {
	token        [sha256.Size]byte
	method, path string
}

// answer is an HTTP status and its expiry.
type answer struct {
	status int
	until  time.Time
}

// filter implements metricsserver.Filter.
func (g *authorizer) filter(log logr.Logger, metrics http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := g.authorize(r)
		switch {
		case err != nil:
			log.Error(err, "cannot authorize callers of the metrics endpoint; the operator needs permission to create tokenreviews and subjectaccessreviews, "+
				"or the flag --metrics-secure=false")
			http.Error(w, "cannot authorize the request at the API server", http.StatusInternalServerError)
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

// authorize returns the HTTP status for the request, from the cache where possible.
func (g *authorizer) authorize(r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	q := cacheKey{sha256.Sum256([]byte(token)), strings.ToLower(r.Method), r.URL.Path}
	if status, ok := g.cached(q); ok {
		return status, nil
	}
	defer g.reviews.Add(-1)
	if g.reviews.Add(1) > maxReviews {
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	status, err := g.review(ctx, token, q)
	if err == nil {
		g.store(q, status)
	}
	return status, err
}

// review authenticates the token and authorizes its user at the API server.
func (g *authorizer) review(ctx context.Context, token string, q cacheKey) (int, error) {
	authn, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !authn.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := authn.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	access, err := g.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: q.method, Path: q.path},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (g *authorizer) cached(q cacheKey) (int, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.answers[q]
	return a.status, ok && g.now.Now().Before(a.until)
}

func (g *authorizer) store(q cacheKey, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now.Now()
	if len(g.answers) >= maxAnswers {
		maps.DeleteFunc(g.answers, func(_ cacheKey, a answer) bool { return !now.Before(a.until) })
	}
	if len(g.answers) >= maxAnswers {
		return
	}
	ttl := refusedTTL
	if status == http.StatusOK {
		ttl = allowedTTL
	}
	g.answers[q] = answer{status, now.Add(ttl)}
}
