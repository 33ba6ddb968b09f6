package engine

import "github.com/go-logr/logr"

// log writes what was applied, and the decision if the status does not have it yet.
func (r *result) log(log logr.Logger) {
	for _, c := range r.changes {
		log.Info("provided", "change", c.String())
	}
	for _, i := range r.issued {
		log.Info("certificate", "secret", i.Secret, "what", i.What, "until", i.Until, "reason", i.Reason)
	}
	switch fresh := r.news(); {
	case fresh && r.cause != nil:
		log.Error(r.cause, r.decision.String())
	case fresh:
		log.Info(r.decision.String())
	case r.cause != nil:
		log.V(1).Info(r.decision.String(), "cause", r.cause.Error())
	}
}
