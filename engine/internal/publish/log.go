package publish

import "github.com/go-logr/logr"

// Log writes what was applied, and the decision if the status does not have it yet.
func (r *Result) Log(log logr.Logger) {
	for _, c := range r.Changes {
		log.Info("provided", "change", c.String())
	}
	for _, i := range r.Issued {
		log.Info("certificate", "secret", i.Secret, "what", i.What, "until", i.Until, "reason", i.Reason)
	}
	switch fresh := r.news(); {
	case fresh && r.Cause != nil:
		log.Error(r.Cause, r.Decision.String())
	case fresh:
		log.Info(r.Decision.String())
	case r.Cause != nil:
		log.V(1).Info(r.Decision.String(), "cause", r.Cause.Error())
	}
}
