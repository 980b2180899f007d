-- What wrk asks the key API for: `wrk -s keys.lua URL -- MODE`, MODE one of get, put, cas, post, list,
-- list-changing. Keys are those of store-speed.ts. The last line of the output is JSON.

local count = 1000
local form = { ["Content-Type"] = "application/x-www-form-urlencoded" }
local value = "value=" .. string.rep("x", 100)

local function list() return "GET", "/v2/keys/list?recursive=true" end

local modes = {
  get = function(at) return "GET", "/v2/keys/bench/" .. at end,
  put = function(at) return "PUT", "/v2/keys/bench/" .. at, value end,
  cas = function(at) return "PUT", "/v2/keys/bench/" .. at, value .. "&prevValue=" .. string.rep("x", 100) end,
  post = function(at) return "POST", "/v2/keys/queue/" .. at, value end,
  list = list,
  -- Every eleventh request changes one of the keys that are listed.
  ["list-changing"] = function(at)
    if at % 11 ~= 0 then return list() end
    return "PUT", "/v2/keys/list/" .. at % 100 .. "/" .. at, value
  end,
}

local requests = {}
local next = 0

function init(args)
  local make = modes[args[1]]
  for at = 1, count do
    local method, path, body = make(at)
    requests[at] = wrk.format(method, path, body and form or nil, body)
  end
end

function request()
  next = next % count + 1
  return requests[next]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{"requests":%d,"microseconds":%d,"failed":%d,"p99Microseconds":%d}\n',
    summary.requests, summary.duration, failed, latency:percentile(99)))
end
