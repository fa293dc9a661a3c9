// The two-peripheral piconet of the thesis (models/venugopal-2006/piconet and piconet-errors) as a program of its
// own: polling, token bucket, NewReno, two-state radio, written for this one scenario with the standard library.
//
//     piconet SECONDS REPLICATIONS SEED LOAD_KBPS ERRORS(0 or 1)
//
// prints one JSON object: goodput of each replication (kbit/s, mean of the two flows), events, CPU seconds.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <limits>
#include <queue>
#include <random>
#include <vector>

using Time = std::int64_t;  // nanoseconds

constexpr Time second = 1'000'000'000, slot = 625'000, never = std::numeric_limits<Time>::max();
constexpr int stations = 2, visit_limit = 5, window_limit = 64;
constexpr std::size_t token_buffer_packets = 25, uplink_packets = 20;
constexpr std::int64_t nanobits_a_byte = 8 * second;
constexpr std::int64_t token_rate = 250'000, bucket_depth = 3000 * nanobits_a_byte;

struct PacketType {
    int slots, payload_bytes;
    double error_rate[2];  // bad, good
};

struct Segment {
    int flow;
    bool is_ack, damaged;
    int travelling;
    std::int64_t number;
    Time timestamp;
};

struct Packet {
    int segment, type;
    bool corrupted;
};

struct Radio {
    bool good = true;
    Time sampled_at = -100 * second;
};

struct Bucket {
    std::int64_t tokens = bucket_depth;
    Time updated_at = 0;
};

struct Connection {
    // sender
    std::int64_t written = 0, snd_una = 0, snd_nxt = 0, snd_max = 0, recover = -1;
    double cwnd = 1, ssthresh = 64;
    int duplicate_acks = 0;
    bool in_recovery = false, retransmit = false, measured = false;
    double srtt = 0, rttvar = 0;
    Time rto = 3 * second, deadline = never, timer_due = never;
    // receiver
    std::int64_t rcv_nxt = 0, last_ack_sent = 0;
    Time ts_recent = 0;
    std::array<bool, window_limit> out_of_order{};
};

enum Kind { turn, tokens, arrival, retransmission };

struct Event {
    Time due;
    Kind kind;
    int owner;
    bool operator>(const Event& other) const {
        if (due != other.due) return due > other.due;
        if (kind != other.kind) return kind > other.kind;
        return owner > other.owner;
    }
};

class Piconet {
  public:
    Piconet(std::uint64_t seed, double load_kbps, bool errors)
        : random(seed), gap(load_kbps * 1000 / (1460 * 8) / second), lossy(errors) {
        for (PacketType& type : types) {
            for (int good = 0; good < 2; ++good) {
                const double ber = errors ? (good ? 6.8979e-6 : 1.263e-4) : 0;
                type.error_rate[good] = 1 - std::pow(1 - ber, 8 * type.payload_bytes);
            }
        }
        events.push({0, turn, 0});
        next_is_uplink = true;
        polled = true;
        for (int flow = 0; flow < stations; ++flow) schedule_arrival(flow, 0);
    }

    void advance(Time until) {
        while (events.top().due <= until) {
            const Event event = events.top();
            events.pop();
            ++played;
            switch (event.kind) {
                case turn: on_turn(event.due); break;
                case tokens: on_tokens(event.owner, event.due); break;
                case arrival:
                    ++connections[event.owner].written;
                    schedule_arrival(event.owner, event.due);
                    send_pending(event.owner, event.due);
                    break;
                case retransmission: on_retransmission_timer(event.owner, event.due); break;
            }
        }
    }

    std::int64_t delivered() const {
        std::int64_t sum = 0;
        for (const Connection& conn : connections) sum += conn.rcv_nxt;
        return sum;
    }

    std::int64_t played = 0;

  private:
    std::mt19937_64 random;
    std::exponential_distribution<double> gap;
    std::uniform_real_distribution<double> uniform{0, 1};
    bool lossy;
    std::array<PacketType, 2> types{{{5, 339, {}}, {3, 183, {}}}};
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    std::array<Connection, stations> connections;
    std::array<Bucket, stations> buckets;
    std::array<Radio, stations> radios;
    std::array<std::deque<Packet>, stations> buffers, uplinks, downlinks;
    std::vector<Segment> segments;
    std::vector<int> free_segments;
    // the central
    int station = 0, frame = 0, waiting = 0;
    bool next_is_uplink = false, on_air = false, polled = false;

    // ------------------------------------------------------------ polling

    void on_turn(Time now) {
        if (!next_is_uplink) {
            const bool received = on_air;
            Packet packet{};
            if (received) packet = receive(downlinks[station], now);
            transmit(uplinks[station], true, now);
            if (received) deliver(packet, now);
            return;
        }
        const bool null = !on_air;
        if (on_air) {
            const Packet packet = receive(uplinks[station], now);
            downlinks[receiver_of(segments[packet.segment])].push_back(packet);
            ++waiting;
        }
        if ((polled && null) || ++frame == visit_limit) {
            station = (station + 1) % stations;
            frame = 0;
        }
        if (waiting == 0 && frame == 0) now = skip_idle_visits(now);
        transmit(downlinks[station], false, now);
        polled = !on_air;
    }

    Time skip_idle_visits(Time now) {
        const Time visits = std::max<Time>(0, (events.top().due - now) / (2 * slot));
        station = static_cast<int>((station + visits) % stations);
        return now + visits * 2 * slot;
    }

    void transmit(const std::deque<Packet>& line, bool uplink, Time now) {
        next_is_uplink = uplink;
        on_air = !line.empty();
        events.push({now + (on_air ? types[line.front().type].slots : 1) * slot, turn, 0});
    }

    Packet receive(std::deque<Packet>& line, Time now) {
        Packet packet = line.front();
        line.pop_front();
        --waiting;
        if (lossy) {
            const double rate = types[packet.type].error_rate[sample(radios[station], now)];
            packet.corrupted |= uniform(random) < rate;
        }
        return packet;
    }

    bool sample(Radio& radio, Time now) {
        constexpr double good_s = 0.4375, bad_s = 0.0558, stationary = good_s / (good_s + bad_s);
        const double elapsed = static_cast<double>(now - radio.sampled_at) / second;
        const double memory = std::exp(-(1 / good_s + 1 / bad_s) * elapsed);
        radio.good = uniform(random) < stationary * (1 - memory) + (radio.good ? memory : 0);
        radio.sampled_at = now;
        return radio.good;
    }

    static int receiver_of(const Segment& segment) {
        return segment.is_ack ? segment.flow : (segment.flow + 1) % stations;
    }

    // ------------------------------------------------------------ flow control

    static std::int64_t price(const PacketType& type) { return type.payload_bytes * nanobits_a_byte; }

    void accrue(Bucket& bucket, Time now) {
        const Time full_after = (bucket_depth - bucket.tokens) / token_rate;
        const Time elapsed = now - bucket.updated_at;
        bucket.tokens = elapsed > full_after ? bucket_depth : bucket.tokens + token_rate * elapsed;
        bucket.updated_at = now;
    }

    void admit(int host, Packet packet, Time now) {
        Bucket& bucket = buckets[host];
        std::deque<Packet>& buffer = buffers[host];
        const bool nobody_waits = buffer.empty();
        if (nobody_waits) {
            accrue(bucket, now);
            if (bucket.tokens >= price(types[packet.type])) {
                bucket.tokens -= price(types[packet.type]);
                enter_uplink(host, packet);
                return;
            }
        }
        if (buffer.size() >= token_buffer_packets) {
            finish(packet, true);
            return;
        }
        buffer.push_back(packet);
        if (nobody_waits) wait_for_tokens(host, now);
    }

    void wait_for_tokens(int host, Time now) {
        const std::int64_t missing = price(types[buffers[host].front().type]) - buckets[host].tokens;
        events.push({now + (missing + token_rate - 1) / token_rate, tokens, host});
    }

    void on_tokens(int host, Time now) {
        Bucket& bucket = buckets[host];
        accrue(bucket, now);
        while (!buffers[host].empty()) {
            const Packet packet = buffers[host].front();
            if (bucket.tokens < price(types[packet.type])) {
                wait_for_tokens(host, now);
                return;
            }
            bucket.tokens -= price(types[packet.type]);
            buffers[host].pop_front();
            enter_uplink(host, packet);
        }
    }

    void enter_uplink(int host, const Packet& packet) {
        if (uplinks[host].size() >= uplink_packets) {
            finish(packet, true);
        } else {
            uplinks[host].push_back(packet);
            ++waiting;
        }
    }

    // ------------------------------------------------------------ segments

    void emit(int host, int flow, bool is_ack, std::int64_t number, Time timestamp, Time now) {
        int index;
        if (free_segments.empty()) {
            index = static_cast<int>(segments.size());
            segments.emplace_back();
        } else {
            index = free_segments.back();
            free_segments.pop_back();
        }
        const int packets = is_ack ? 1 : 5;  // 1,504 bytes are four DH5 and a DH3, 44 bytes one DH3
        segments[index] = {flow, is_ack, false, packets, number, timestamp};
        for (int position = 0; position < packets; ++position) {
            admit(host, {index, position == packets - 1 ? 1 : 0, false}, now);
        }
    }

    // Returns whether the segment has come whole; it then still has to be given back.
    bool finish(const Packet& packet, bool lost) {
        Segment& segment = segments[packet.segment];
        segment.damaged |= lost;
        if (--segment.travelling > 0) return false;
        if (segment.damaged) free_segments.push_back(packet.segment);
        return !segment.damaged;
    }

    void deliver(const Packet& packet, Time now) {
        if (!finish(packet, packet.corrupted)) return;
        const Segment segment = segments[packet.segment];
        free_segments.push_back(packet.segment);
        Connection& conn = connections[segment.flow];
        if (segment.is_ack) {
            on_ack(conn, segment.number, segment.timestamp, now);
            send_pending(segment.flow, now);
        } else {
            on_data(conn, segment.number, segment.timestamp);
            conn.last_ack_sent = conn.rcv_nxt;
            emit((segment.flow + 1) % stations, segment.flow, true, conn.rcv_nxt, conn.ts_recent, now);
        }
    }

    // ------------------------------------------------------------ TCP

    void schedule_arrival(int flow, Time now) {
        events.push({now + static_cast<Time>(gap(random)), arrival, flow});
    }

    static double window(const Connection& conn) { return std::min(conn.cwnd, 8.0); }

    void send_pending(int flow, Time now) {
        Connection& conn = connections[flow];
        for (;;) {
            std::int64_t number;
            if (conn.retransmit) {
                conn.retransmit = false;
                number = conn.snd_una;
                conn.snd_nxt = std::max(conn.snd_nxt, number + 1);
            } else if (conn.snd_nxt < conn.written &&
                       static_cast<double>(conn.snd_nxt - conn.snd_una) + 1 <= window(conn)) {
                number = conn.snd_nxt++;
            } else {
                break;
            }
            conn.snd_max = std::max(conn.snd_max, conn.snd_nxt);
            if (conn.deadline == never) conn.deadline = now + conn.rto;
            emit(flow, flow, false, number, now, now);
        }
        if (conn.deadline < conn.timer_due) {
            conn.timer_due = conn.deadline;
            events.push({conn.timer_due, retransmission, flow});
        }
    }

    // A deadline that moved is noticed when its event fires.
    void on_retransmission_timer(int flow, Time now) {
        Connection& conn = connections[flow];
        if (now != conn.timer_due) return;
        if (conn.deadline <= now) {
            conn.ssthresh = std::max(static_cast<double>(conn.snd_nxt - conn.snd_una) / 2, 2.0);
            conn.cwnd = 1;
            conn.recover = conn.snd_max - 1;
            conn.in_recovery = conn.retransmit = false;
            conn.duplicate_acks = 0;
            conn.snd_nxt = conn.snd_una;
            conn.rto = std::min(2 * conn.rto, 64 * second);
            conn.deadline = now + conn.rto;
        }
        conn.timer_due = never;
        send_pending(flow, now);
    }

    void on_ack(Connection& conn, std::int64_t ack, Time echo, Time now) {
        if (ack > conn.snd_una) {
            const std::int64_t acknowledged = ack - conn.snd_una;
            conn.snd_una = ack;
            conn.snd_nxt = std::max(conn.snd_nxt, ack);
            conn.duplicate_acks = 0;
            measure(conn, now - echo);
            if (!conn.in_recovery) {
                conn.cwnd += conn.cwnd < conn.ssthresh ? 1 : 1 / conn.cwnd;
            } else if (ack > conn.recover) {
                conn.in_recovery = false;
                conn.cwnd = conn.ssthresh;
            } else {
                conn.retransmit = true;
                conn.cwnd = std::max(conn.cwnd - static_cast<double>(acknowledged) + 1, 1.0);
            }
            conn.deadline = conn.snd_una >= conn.snd_max ? never : now + conn.rto;
        } else if (ack == conn.snd_una && conn.snd_max > conn.snd_una) {
            ++conn.duplicate_acks;
            if (conn.in_recovery) {
                conn.cwnd += 1;
            } else if (conn.duplicate_acks == 3 && conn.snd_una - 1 > conn.recover) {
                conn.ssthresh = std::max(static_cast<double>(conn.snd_nxt - conn.snd_una) / 2, 2.0);
                conn.recover = conn.snd_max - 1;
                conn.in_recovery = conn.retransmit = true;
                conn.cwnd = conn.ssthresh + 3;
            }
        }
    }

    static void measure(Connection& conn, Time sample) {
        const double rtt = static_cast<double>(sample);
        if (conn.measured) {
            conn.rttvar = 0.75 * conn.rttvar + 0.25 * std::abs(conn.srtt - rtt);
            conn.srtt = 0.875 * conn.srtt + 0.125 * rtt;
        } else {
            conn.measured = true;
            conn.srtt = rtt;
            conn.rttvar = rtt / 2;
        }
        conn.rto = std::clamp(static_cast<Time>(conn.srtt + 4 * conn.rttvar), second, 64 * second);
    }

    static void on_data(Connection& conn, std::int64_t number, Time timestamp) {
        if (number <= conn.last_ack_sent && timestamp >= conn.ts_recent) conn.ts_recent = timestamp;
        if (number != conn.rcv_nxt) {
            if (number > conn.rcv_nxt && number < conn.rcv_nxt + 8) {
                conn.out_of_order[number % window_limit] = true;
            }
            return;
        }
        ++conn.rcv_nxt;
        while (conn.out_of_order[conn.rcv_nxt % window_limit]) {
            conn.out_of_order[conn.rcv_nxt % window_limit] = false;
            ++conn.rcv_nxt;
        }
    }
};

int main(int, char** argv) {
    const Time seconds = std::atoll(argv[1]);
    const int replications = std::atoi(argv[2]);
    const std::uint64_t seed = std::strtoull(argv[3], nullptr, 10);
    const double load_kbps = std::atof(argv[4]);
    const bool errors = std::atoi(argv[5]) != 0;
    constexpr Time warmup = 60;
    std::int64_t events = 0;
    std::printf("{\"goodput_kbps\": [");
    const std::clock_t start = std::clock();
    for (int replication = 0; replication < replications; ++replication) {
        std::seed_seq mixed{seed, static_cast<std::uint64_t>(replication)};
        std::uint64_t own;
        mixed.generate(reinterpret_cast<std::uint32_t*>(&own), reinterpret_cast<std::uint32_t*>(&own) + 2);
        Piconet piconet(own, load_kbps, errors);
        piconet.advance(warmup * second);
        const std::int64_t before = piconet.delivered();
        piconet.advance((warmup + seconds) * second);
        const double kilobits = static_cast<double>(piconet.delivered() - before) * 1460 * 8 / 1000;
        std::printf("%s%.6f", replication ? ", " : "", kilobits / static_cast<double>(seconds) / stations);
        events += piconet.played;
    }
    const double cpu = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("], \"events\": %lld, \"cpu_s\": %.6f, \"simulated_s\": %lld}\n", static_cast<long long>(events),
                cpu, static_cast<long long>((warmup + seconds) * replications));
}
