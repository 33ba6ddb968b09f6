// Package webhookcert rotates and serves the certificate of the operator's webhooks. It
// needs no other component, no volume, and no restart.
//
// The leader writes one Secret. Every replica serves the certificate from a watch. API
// servers trust the caBundle that the leader writes into the trust targets: the webhook
// configurations and the definitions of kinds that are converted.
//
//	            leader                          every replica
//	Standalone ──► Secret ─────────watch───────► Serving ──► TLS
//	                 │ ca.crt                                ▲
//	                 └──► caBundle of targets ──► API server ┘
//
// [certificate.Standalone] decides the rotation, so that no call fails during it. The next
// certificate is not served before every target trusts it. The former authority stays
// trusted until it expires, for replicas that are late.
//
// Another component can manage the certificate. Governor serves, and never writes, a Secret
// that cert-manager issued or that has the annotation governor.dev/paused: "true". Governor
// writes no caBundle of a target with that annotation or that of cert-manager's injector.
package webhookcert
