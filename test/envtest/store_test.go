package envtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// storeURL is the address of the API server's etcd.
var storeURL string

// rewrite changes a stored object to content that the API server would not accept today,
// but did once.
func rewrite(t *testing.T, key, before, after string) {
	t.Helper()
	found := store(t, "range", map[string]any{"key": []byte(key)})
	if len(found.Kvs) != 1 || !strings.Contains(string(found.Kvs[0].Value), before) {
		t.Fatalf("%s is not stored with %s: %v", key, before, found)
	}
	changed := strings.Replace(string(found.Kvs[0].Value), before, after, 1)
	store(t, "put", map[string]any{"key": []byte(key), "value": []byte(changed)})
}

// stored is a response of etcd's gateway.
type stored struct {
	Kvs []struct{ Value []byte }
}

func store(t *testing.T, verb string, question map[string]any) stored {
	t.Helper()
	body, err := json.Marshal(question)
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, storeURL+"/v3/kv/"+verb, strings.NewReader(string(body)))
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd answers %s", response.Status)
	}
	must(t, err)
	var answer stored
	must(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer
}
