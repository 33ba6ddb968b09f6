// Package webhookcert makes, renews and serves the certificate of the operator's webhook.
// Nothing else has to be installed, and nothing is restarted or mounted.
//
// The leader keeps one Secret; every replica serves from it through a watch; the
// API server trusts what the leader puts into the objects by which it calls, the
// webhook configuration and the definitions of kinds that are converted:
//
//	          leader                        every replica
//	Judge ──► Secret ─────────watch───────► Serving ──► TLS
//	             │ ca.crt                                ▲
//	             └──► caBundle of callers ──► API server ┘
//
// A certificate is signed by an authority of its own whose key is forgotten at
// once, so no key lies around that could sign anything else. That no call fails
// while one replaces the other is a matter of order, for neither the replicas nor
// the API servers learn of a change at the same instant:
//
//	prepare   the next certificate is in the Secret, not served; its authority
//	          is trusted beside the present one
//	settle    every API server gets the time to see that
//	promote   the next certificate is served; the former authority stays trusted
//	          until it expires, for replicas that are late
//
// Only a certificate that nobody could use anyway (missing, expired, unreadable,
// for other names, of an untrusted authority) is replaced in one go.
//
// Somebody else may keep the certificate: a Secret that cert-manager issued, or one
// annotated governor.dev/paused: "true", is served as it is and never written. The
// same annotation, or that of cert-manager's injector, on a caller leaves its
// caBundle to others.
package webhookcert

import "time"

const (
	// life is how long a certificate is good for; it is renewed after two thirds.
	life = 90 * 24 * time.Hour
	// settle is how long API servers get to see the authority of a certificate
	// before it is served. It is seconds in practice; waiting longer costs nothing.
	settle = 10 * time.Minute
)

// Keys of the Secret's data.
const (
	// certificateKey and privateKey are what is served, as in every TLS Secret.
	certificateKey = "tls.crt"
	privateKey     = "tls.key"
	// authoritiesKey has every authority to be trusted.
	authoritiesKey = "ca.crt"
	// nextCertificateKey and nextPrivateKey will be served.
	nextCertificateKey = "next.crt"
	nextPrivateKey     = "next.key"
)

// Data is what the Secret holds.
type Data map[string][]byte
