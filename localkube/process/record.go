package process

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Record is what the processes of a program cannot tell: whether it is meant to run, and how often it was restarted.
type Record struct {
	// Stopped reports that the program was stopped on purpose.
	Stopped bool `json:"stopped,omitempty"`
	// Restarts is how often the program ended by itself and was started again.
	Restarts int `json:"restarts,omitempty"`
	// LastRestart is when that happened last.
	LastRestart time.Time `json:"lastRestart,omitzero"`
}

// History is the record of the program. A program without a record file, or with an unreadable one, has an empty record.
func (p Program) History() Record {
	var r Record
	data, _ := os.ReadFile(p.Record)
	_ = json.Unmarshal(data, &r)
	return r
}

// lock keeps every other localkube from starting or stopping the program. A program without a record needs no lock:
// nothing restarts it.
func (p Program) lock() (unlock func(), err error) {
	if p.Record == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(filepath.Dir(p.Record), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p.Record+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// save replaces the record in one step. It writes nothing when nothing has changed, so that a full disk hinders no start.
func (p Program) save(r Record) error {
	if p.Record == "" || r == p.History() {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.Record+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(p.Record+".new", p.Record)
}
