package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// patience with one answer.
const patience = 2 * time.Second

// What a machine may answer, or not.
var (
	errSilent   = errors.New("the machine does not answer")
	errUnknown  = errors.New("the machine does not know it")
	errConflict = errors.New("the machine refuses it now")
)

// call asks the machine. The answer is read into the last argument unless that is nil.
func (d Driver) call(ctx context.Context, method, url string, body, into any) error {
	raw := &bytes.Buffer{}
	if body != nil {
		if err := json.NewEncoder(raw).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, url, raw)
	if err != nil {
		return err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	if err := meaning(response.StatusCode, answer); err != nil || into == nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

func meaning(status int, answer []byte) error {
	said := struct{ Error string }{}
	_ = json.Unmarshal(answer, &said) // an unreadable answer counts as none
	switch {
	case status < http.StatusMultipleChoices:
		return nil
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %d %s", errSilent, status, said.Error)
	case status == http.StatusNotFound:
		return fmt.Errorf("%w: %s", errUnknown, said.Error)
	case status == http.StatusConflict:
		return fmt.Errorf("%w: %s", errConflict, said.Error)
	}
	return fmt.Errorf("the machine answers %d: %s", status, said.Error)
}
