package webhookcert

import (
	"sync"

	"github.com/go-logr/logr"
)

// matter is what something can be wrong with, and what users lose meanwhile.
type matter struct{ name, loss string }

const (
	noAdvice     = "users may get no advice at kubectl apply; all else works"
	noPreview    = "users get no preview from kubectl governor plan; all else works"
	noConversion = "it can be read and written in its stored version only; all else works"
	noWebhook    = "users may get no advice at kubectl apply, and kinds may be usable in their stored version only; all else works"
)

// theCertificate is the matter of the Secret and of what is served.
var theCertificate = matter{"certificate", noWebhook}

// herald says each thing once. The operator works without its webhook: that it is
// hindered is worth one line in the log, not one for each attempt.
type herald struct {
	log logr.Logger

	mu   sync.Mutex
	said map[string]string // by the matter's name
}

func newHerald(log logr.Logger) *herald {
	return &herald{log: log, said: map[string]string{}}
}

// tell says what hinders the matter, unless it was the last that was said of it,
// and says when nothing hinders it any more.
func (h *herald) tell(m matter, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	words := ""
	if err != nil {
		words = err.Error()
	}
	if h.said[m.name] == words {
		return
	}
	h.said[m.name] = words
	if words == "" {
		h.log.Info("in order again", "matter", m.name)
		return
	}
	h.log.Info(m.loss, "matter", m.name, "because", words)
}
