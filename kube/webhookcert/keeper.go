package webhookcert

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// grace is how long a replica without a certificate counts as not ready. It is
	// bounded, for the operator's work does not need the webhook.
	grace = 10 * time.Second
	// nap is the longest time between two looks, which cost no request: clocks may
	// jump.
	nap = time.Hour
	// firstRetry and lastRetry bound the growing pause after a failure.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// Options say which certificate is kept for whom.
type Options struct {
	// Program is the operator's name, for the labels of the Secret; empty means
	// governor.
	Program string

	// Namespace and Secret are where the certificate lies.
	Namespace, Secret string

	// Configuration is the name of the ValidatingWebhookConfiguration and of the
	// MutatingWebhookConfiguration whose webhooks trust it.
	Configuration string

	// Definitions are the names of the custom resource definitions whose conversion
	// between versions is served by this operator. One that is missing may come
	// later; one that calls by none of the Names is left alone.
	Definitions []string

	// Names are the names by which API servers call, and those of other servers that show
	// the certificate.
	Names []string

	// Clock is the clock; nil means the real one.
	Clock clock.Clock
}

// Keeper keeps the certificate in order and loads it into Serving. It runs in
// every replica and writes in the leader only.
type Keeper struct {
	mgr     manager.Manager
	options Options
	serving *Serving
	herald  *herald
	retries workqueue.TypedRateLimiter[string]
	changed chan struct{}
	began   time.Time
	leads   bool

	secret  view
	callers []*caller
}

// New returns a keeper for the manager to run.
func New(mgr manager.Manager, serving *Serving, o Options) (*Keeper, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	k := &Keeper{
		mgr: mgr, options: o, serving: serving,
		herald:  newHerald(mgr.GetLogger().WithName("webhook-certificate")),
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry),
		changed: make(chan struct{}, 1), began: o.Clock.Now(),
		secret:  view{object: blankSecret(o), matter: matter{"Secret " + o.Secret, noWebhook}},
		callers: newCallers(o),
	}
	for _, v := range k.views() {
		if err := v.open(mgr, k.herald); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Ready implements healthz.Checker: a replica that came up gets a moment to load
// the certificate before calls are sent to it.
func (k *Keeper) Ready(*http.Request) error {
	if k.serving.Loaded() || k.options.Clock.Since(k.began) > grace {
		return nil
	}
	return errors.New("the webhook's certificate is not loaded yet")
}

// Start implements manager.Runnable. It never fails: whatever is wrong with the
// certificate must not stop the operator.
func (k *Keeper) Start(ctx context.Context) error {
	k.watch(ctx)
	elected := k.mgr.Elected()
	for {
		timer := k.options.Clock.NewTimer(k.turn(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-elected:
			k.leads, elected = true, nil
		case <-k.changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// turn looks once and returns after what time to look again.
func (k *Keeper) turn(ctx context.Context) time.Duration {
	due, err := k.keep(ctx)
	if apierrors.IsConflict(err) {
		return firstRetry // somebody was faster: look at what they did
	}
	if err != nil {
		return k.retries.When("")
	}
	k.retries.Forget("")
	return min(max(due.Sub(k.options.Clock.Now()), 0), nap)
}

// keep brings the Secret, what is served and what is trusted into line.
func (k *Keeper) keep(ctx context.Context) (time.Time, error) {
	later := k.options.Clock.Now().Add(nap)
	secret, callers, err := k.look(ctx)
	if err != nil || secret == nil {
		return later, k.tell(theCertificate, err) // not seen yet: the watch wakes
	}
	if !k.leads {
		return later, k.tell(theCertificate, k.load(secret))
	}
	due, err := k.renew(ctx, secret, bundlesOf(callers, k.options.Names))
	err = k.tell(theCertificate, errors.Join(err, k.load(secret)))
	if err != nil {
		return due, err
	}
	return due, k.inject(ctx, callers, secret.Data[authoritiesKey])
}

// tell says what hinders the matter and returns it. That somebody else was faster
// hinders nothing.
func (k *Keeper) tell(m matter, err error) error {
	if !apierrors.IsConflict(err) {
		k.herald.tell(m, err)
	}
	return err
}

func (k *Keeper) load(secret *corev1.Secret) error {
	if len(secret.Data) == 0 && !k.serving.Loaded() {
		return nil // the leader is about to make it
	}
	return k.serving.Load(secret.Data)
}

// renew does what Judge says, and leaves the Secret as it is then. What the cache
// shows may be old, so before a write the API server itself is asked.
func (k *Keeper) renew(ctx context.Context, secret *corev1.Secret, bundles [][]byte) (time.Time, error) {
	verdict := k.judge(secret, bundles)
	if verdict.Do != Keep {
		if err := k.fetch(ctx, secret); err != nil {
			return time.Time{}, err
		}
		verdict = k.judge(secret, bundles)
	}
	if verdict.Do == Keep {
		return verdict.Next, nil
	}
	fresh, err := Enact(verdict, secret.Data, k.options.Names, k.options.Clock.Now())
	if err != nil {
		return time.Time{}, err
	}
	k.herald.log.Info("certificate", "action", verdict.Do, "reason", verdict.Reason)
	if err := k.save(ctx, secret, fresh); err != nil {
		return time.Time{}, err
	}
	return k.options.Clock.Now(), nil // the next judgement says when to look again
}

func (k *Keeper) judge(secret *corev1.Secret, bundles [][]byte) Verdict {
	now := k.options.Clock.Now()
	if keptByOthers(secret) {
		return Verdict{Do: Keep, Reason: "KeptByOthers", Next: now.Add(nap)}
	}
	return Judge(secret.Data, k.options.Names, bundles, now)
}
