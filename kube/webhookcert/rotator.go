package webhookcert

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// readinessGrace is how long a replica without a certificate is not ready. It is
	// bounded because the operator works without its webhooks.
	readinessGrace = 10 * time.Second
	// maxPause is the longest time between two reconciles. At rest they send no request. A
	// clock may jump, so the rotator does not rely on one long timer.
	maxPause = time.Hour
	// firstRetry and lastRetry bound the backoff after a failure.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// Options are those of a Rotator.
type Options struct {
	// Program is the operator's name, for the labels of the Secret; empty means
	// governor.
	Program string

	// Namespace and Secret name the Secret with the certificate.
	Namespace, Secret string

	// Configuration is the name of the ValidatingWebhookConfiguration and of the
	// MutatingWebhookConfiguration whose webhooks trust the certificate.
	Configuration string

	// Definitions are the names of the custom resource definitions whose versions this
	// operator converts. A missing one may be created later. The rotator does not write
	// one that calls none of the Names.
	Definitions []string

	// Names are the DNS names by which clients call the servers of this operator.
	Names []string

	// Scoped says that this operator watches only some namespaces. Then another install may
	// serve the others, and own the Configuration.
	Scoped bool

	// Clock is the clock; nil means the real one.
	Clock clock.Clock
}

// Rotator rotates the certificate and loads it into Serving. It runs in every replica, and
// only the leader writes.
type Rotator struct {
	mgr     manager.Manager
	options Options
	plan    certificate.Standalone
	serving *Serving
	log     *dedupLogger
	retries workqueue.TypedRateLimiter[string]
	changed chan struct{}
	began   time.Time
	leads   bool
	second  atomic.Pointer[error] // that another install has the configuration; nil if none does

	secret  watched
	targets []*trustTarget
}

// New returns a rotator for the manager to run.
func New(mgr manager.Manager, serving *Serving, o Options) (*Rotator, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Rotator{
		mgr: mgr, options: o, serving: serving,
		plan:    certificate.Standalone{CommonName: "governor-webhook-ca", Names: o.Names},
		log:     newDedupLogger(mgr.GetLogger().WithName("webhook-certificate")),
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry),
		changed: make(chan struct{}, 1), began: o.Clock.Now(),
		secret:  watched{object: emptySecret(o), topic: topic{"Secret " + o.Secret, noWebhook}},
		targets: newTrustTargets(o),
	}
	for _, w := range r.allWatched() {
		if err := w.open(mgr, r.log); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *Rotator) NeedLeaderElection() bool { return false }

// Ready implements healthz.Checker. A new replica gets some time to load the certificate
// before it receives calls. A second install that acts on the objects of another one is never
// ready, so that its rollout shows the mistake.
func (r *Rotator) Ready(*http.Request) error {
	if second := r.second.Load(); second != nil {
		return *second
	}
	if r.serving.Loaded() || r.options.Clock.Since(r.began) > readinessGrace {
		return nil
	}
	return errors.New("the webhook's certificate is not loaded yet")
}

// Start implements manager.Runnable. It never fails: a problem with the certificate must
// not stop the operator.
func (r *Rotator) Start(ctx context.Context) error {
	r.watch(ctx)
	elected := r.mgr.Elected()
	for {
		timer := r.options.Clock.NewTimer(r.reconcileAndPause(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-elected:
			r.leads, elected = true, nil
		case <-r.changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// reconcileAndPause reconciles and returns the time until the next reconcile.
func (r *Rotator) reconcileAndPause(ctx context.Context) time.Duration {
	due, err := r.reconcile(ctx)
	if apierrors.IsConflict(err) {
		return firstRetry // another client has written since the read
	}
	if err != nil {
		return r.retries.When("")
	}
	r.retries.Forget("")
	return min(max(due.Sub(r.options.Clock.Now()), 0), maxPause)
}

// reconcile rotates the certificate, serves it, and makes the targets trust it.
func (r *Rotator) reconcile(ctx context.Context) (time.Time, error) {
	later := r.options.Clock.Now().Add(maxPause)
	secret, targets, err := r.observe(ctx)
	if err != nil || secret == nil {
		return later, r.report(certificateTopic, err) // the watch requeues once it has synced
	}
	r.compareInstalls(targets)
	if !r.leads {
		return later, r.report(certificateTopic, r.load(secret))
	}
	due, err := r.rotate(ctx, secret, bundlesOf(targets, r.options.Names))
	err = r.report(certificateTopic, errors.Join(err, r.load(secret)))
	if err != nil {
		return due, err
	}
	return due, r.inject(ctx, targets, secret.Data[lifecycle.KeyAuthorities])
}

// compareInstalls records whether another install has a webhook configuration of this operator.
func (r *Rotator) compareInstalls(all []observedTarget) {
	var second *error
	for _, t := range all {
		if err := r.belongsElsewhere(t); err != nil && !r.options.Scoped {
			second = &err
		}
	}
	r.second.Store(second)
}

// report logs the error and returns it. A conflict is not a failure.
func (r *Rotator) report(t topic, err error) error {
	if !apierrors.IsConflict(err) {
		r.log.report(t, err)
	}
	return err
}

func (r *Rotator) load(secret *corev1.Secret) error {
	if len(secret.Data) == 0 && !r.serving.Loaded() {
		return nil // the leader is about to create it
	}
	return r.serving.Load(secret.Data)
}

// rotate executes the decision and leaves the Secret as it is then. The cache may be
// stale, so before a write the rotator reads from the API server and decides again.
func (r *Rotator) rotate(ctx context.Context, secret *corev1.Secret, bundles [][]byte) (time.Time, error) {
	decision := r.decide(secret, bundles)
	if decision.Action != certificate.ActionKeep {
		if err := r.readSecret(ctx, secret); err != nil {
			return time.Time{}, err
		}
		decision = r.decide(secret, bundles)
	}
	if decision.Action == certificate.ActionKeep {
		return decision.Next, nil
	}
	data, err := r.plan.Execute(decision, secret.Data, r.options.Clock.Now())
	if err != nil {
		return time.Time{}, err
	}
	r.log.log.Info("certificate", "action", decision.Action, "reason", decision.Reason)
	if err := r.writeSecret(ctx, secret, data); err != nil {
		return time.Time{}, err
	}
	return r.options.Clock.Now(), nil // the next reconcile decides when to decide again
}

func (r *Rotator) decide(secret *corev1.Secret, bundles [][]byte) certificate.Decision {
	now := r.options.Clock.Now()
	if isManagedElsewhere(secret) {
		return certificate.Decision{Action: certificate.ActionKeep, Next: now.Add(maxPause)}
	}
	return r.plan.Decide(secret.Data, bundles, now)
}
