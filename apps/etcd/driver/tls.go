package driver

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// secretsFresh is after how long unchanged Secrets of users are validated again: their certificates may have expired.
const secretsFresh = 15 * time.Second

// keys are the operator's certificates and trusted authorities.
type keys struct {
	// config is nil without encryption; missing reports that traffic is encrypted, but no
	// member can be queried yet.
	config  *tls.Config
	missing bool
	// digest changes with the certificates.
	digest string
	// problem describes what is wrong with users' own Secrets; legacy reports that they have
	// the legacy API's keys.
	problem string
	legacy  bool
	// unknown reports that one of them has neither keys.
	unknown bool
	// trust is a digest of the authorities that members must trust, if known.
	trust string
	// revocation and bundles are those of [etcd.World].
	revocation lifecycle.RevocationPhase
	bundles    map[string]string
	// peers is the peer certificate in users' own Secrets; otherwise nil.
	peers *tls.Config
}

// user is the common name of the operator's certificate. etcd uses it as the user name if
// authentication is enabled.
func (k keys) user() string {
	if k.config == nil || len(k.config.Certificates) == 0 || k.config.Certificates[0].Leaf == nil {
		return ""
	}
	return k.config.Certificates[0].Leaf.Subject.CommonName
}

func refusedAny(responses map[string]answer) bool {
	for _, a := range responses {
		if a.unauthorized {
			return true
		}
	}
	return false
}

// tlsCache caches the keys of each cluster, because parsing them costs more than a query.
type tlsCache struct {
	mu sync.Mutex
	of map[cacheKey]tlsEntry
}

// cacheKey identifies a cluster. One that is only previewed has no UID yet.
type cacheKey struct {
	types.NamespacedName
	uid types.UID
}

func cacheKeyOf(want *etcdv1.EtcdCluster) cacheKey {
	return cacheKey{client.ObjectKeyFromObject(want), want.UID}
}

type tlsEntry struct {
	keys
	version string // of the issued Secret, or the names of users' own
	read    time.Time
}

func newTLSCache() *tlsCache { return &tlsCache{of: map[cacheKey]tlsEntry{}} }

func (r *tlsCache) get(cluster cacheKey) tlsEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[cluster]
}

func (r *tlsCache) put(cluster cacheKey, now time.Time, as tlsEntry) keys {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, known := range r.of {
		if now.Sub(known.read) > time.Hour {
			delete(r.of, other) // the cluster was deleted, or is read again
		}
	}
	as.read = now
	r.of[cluster] = as
	return as.keys
}

func (d *Driver) keys(ctx context.Context, want *etcdv1.EtcdCluster) (keys, error) {
	switch {
	case want.Spec.TLS.Mode == etcdv1.TLSModeSecrets:
		return d.usersKeys(ctx, want)
	case etcd.ClientsEncrypt(want):
		return d.managedKeys(ctx, want)
	}
	return keys{}, nil
}

func (d *Driver) usersKeys(ctx context.Context, want *etcdv1.EtcdCluster) (keys, error) {
	all, err := d.readSecrets(ctx, want) // each time: a user's write must be seen when it wakes the cluster
	if err != nil {
		return keys{}, err // unknown must not be cached as valid
	}
	known, now := d.tlsCache.get(cacheKeyOf(want)), d.now()
	version := names(want)
	for _, s := range all {
		version += " " + s.secret.ResourceVersion
	}
	if known.problem == "" && now.Sub(known.read) < secretsFresh && known.version == version {
		return known.keys, nil
	}
	return d.tlsCache.put(cacheKeyOf(want), now, tlsEntry{keys: ownKeys(all, want, now), version: version}), nil
}

// managedKeys reads the issued Secrets from the cache; a missing one is about to be issued.
func (d *Driver) managedKeys(ctx context.Context, want *etcdv1.EtcdCluster) (keys, error) {
	mine, err := d.issuedSecret(ctx, want, etcd.ClientSecret(want))
	if err != nil || mine == nil {
		return keys{missing: true}, err
	}
	version := mine.ResourceVersion
	if before := want.Spec.TLS.RevokeBefore; before != nil {
		version += " " + before.String()
	}
	var authorities []*corev1.Secret
	for _, name := range etcd.Authorities(want) {
		s, err := d.issuedSecret(ctx, want, name)
		if err != nil {
			return keys{}, err
		}
		if s != nil {
			authorities, version = append(authorities, s), version+" "+s.ResourceVersion
		}
	}
	known, now := d.tlsCache.get(cacheKeyOf(want)), d.now()
	if known.version == version && now.Sub(known.read) < time.Hour {
		return known.keys, nil
	}
	config, err := configure(bundleOf(mine, standardKeys))
	k := keys{config: config, missing: err != nil, digest: digest(mine.Data)}
	if len(authorities) == len(etcd.Authorities(want)) {
		w := etcd.Trusting(want, etcd.World{}, authorities)
		k.trust, k.revocation, k.bundles = w.Trust, w.Revocation, w.Bundles
	}
	return d.tlsCache.put(cacheKeyOf(want), now, tlsEntry{keys: k, version: version}), nil
}

// issuedSecret returns the Secret, which callers must not change, or nil if it does not exist.
func (d *Driver) issuedSecret(ctx context.Context, want *etcdv1.EtcdCluster, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := d.client.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: name}, s, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no Secret and no error
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the Secret %q: %w", name, err)
	}
	return s, nil
}

// names are the names of users' own Secrets, and the names that their certificates need. A changed
// name invalidates the cache.
func names(want *etcdv1.EtcdCluster) string {
	all := []string{namesForPeers(want).caller}
	for _, u := range secretRefs(want) {
		all = append(all, u.name)
	}
	return strings.Join(all, ",")
}

func digest(data map[string][]byte) string {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		sum.Write([]byte(key))
		sum.Write(data[key])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// bundle is a certificate with its key and the authorities of the other side.
type bundle struct{ certificate, key, authorities []byte }

// configure returns the TLS configuration of a client.
func configure(b bundle) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(b.certificate, b.key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b.authorities) {
		return nil, fmt.Errorf("no authority in PEM")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots,
		// Without it crypto/tls sends no certificate to a member whose authorities have other names, and the member's answer
		// does not say that it refuses this one.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	}, nil
}
