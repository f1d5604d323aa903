// A host for the LV2 plug-in of examples/plugin: lv2_host BUNDLE FOLDER. What the plug-in makes of FOLDER/in.f32 must
// be FOLDER/out.f32, which clap_host has written, bit by bit. It offers what the plug-in requires: identifiers for
// URIs, options and a worker, which works at once.
#include <lilv/lilv.h>
#include <lv2/atom/atom.h>
#include <lv2/buf-size/buf-size.h>
#include <lv2/options/options.h>
#include <lv2/parameters/parameters.h>
#include <lv2/urid/urid.h>
#include <lv2/worker/worker.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using Values = std::vector<float>;

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "lv2_host: failed: %s\n", what);
  std::exit(1);
}

Values read(const std::filesystem::path& path) {
  Values x(std::filesystem::file_size(path) / sizeof(float));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  return x;
}

std::vector<std::string> uris;  // the identifier of a URI is its place, counted from 1

LV2_URID id_of(LV2_URID_Map_Handle, const char* uri) {
  auto found = std::find(uris.begin(), uris.end(), uri);
  if (found == uris.end()) found = uris.insert(uris.end(), uri);
  return static_cast<LV2_URID>(found - uris.begin() + 1);
}

const char* uri_of(LV2_URID_Unmap_Handle, LV2_URID id) { return uris.at(id - 1).c_str(); }

struct Worker {
  LV2_Handle plugin = nullptr;
  const LV2_Worker_Interface* interface = nullptr;
};

LV2_Worker_Status work_now(LV2_Worker_Schedule_Handle handle, std::uint32_t size, const void* data) {
  const auto& w = *static_cast<const Worker*>(handle);
  const auto respond = [](LV2_Worker_Respond_Handle h, std::uint32_t n, const void* answer) {
    const auto& worker = *static_cast<const Worker*>(h);
    return worker.interface->work_response(worker.plugin, n, answer);
  };
  return w.interface ? w.interface->work(w.plugin, respond, handle, size, data) : LV2_WORKER_ERR_UNKNOWN;
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 3, "two arguments");
  const std::filesystem::path folder(argv[2]);
  const Values x = read(folder / "in.f32"), expected = read(folder / "out.f32");
  LilvWorld* const world = lilv_world_new();
  LilvNode* const bundle = lilv_new_file_uri(world, nullptr, (std::string(argv[1]) + "/").c_str());
  lilv_world_load_bundle(world, bundle);
  LilvNode* const uri = lilv_new_uri(world, "urn:ferrite:amp");
  const LilvPlugin* const plugin = lilv_plugins_get_by_uri(lilv_world_get_all_plugins(world), uri);
  require(plugin && lilv_plugin_verify(plugin), "the plug-in is described well");

  constexpr std::uint32_t kBlock = 200;
  std::int32_t block = kBlock;
  float rate = 48000;
  const auto id = [](const char* u) { return id_of(nullptr, u); };
  const std::array<LV2_Options_Option, 4> options{
      {{LV2_OPTIONS_INSTANCE, 0, id(LV2_BUF_SIZE__maxBlockLength), sizeof block, id(LV2_ATOM__Int), &block},
       {LV2_OPTIONS_INSTANCE, 0, id(LV2_BUF_SIZE__nominalBlockLength), sizeof block, id(LV2_ATOM__Int), &block},
       {LV2_OPTIONS_INSTANCE, 0, id(LV2_PARAMETERS__sampleRate), sizeof rate, id(LV2_ATOM__Float), &rate},
       {LV2_OPTIONS_INSTANCE, 0, 0, 0, 0, nullptr}}};
  LV2_URID_Map map{nullptr, id_of};
  LV2_URID_Unmap unmap{nullptr, uri_of};
  Worker worker;
  LV2_Worker_Schedule schedule{&worker, work_now};
  const LV2_Feature of_map{LV2_URID__map, &map}, of_unmap{LV2_URID__unmap, &unmap},
      of_options{LV2_OPTIONS__options, const_cast<LV2_Options_Option*>(options.data())},
      of_worker{LV2_WORKER__schedule, &schedule}, bounded{LV2_BUF_SIZE__boundedBlockLength, nullptr};
  const std::array<const LV2_Feature*, 6> features{&of_map, &of_unmap, &of_options, &of_worker, &bounded, nullptr};
  LilvInstance* const instance = lilv_plugin_instantiate(plugin, rate, features.data());
  require(instance, "an instance is made");
  worker.plugin = lilv_instance_get_handle(instance);
  worker.interface =
      static_cast<const LV2_Worker_Interface*>(lilv_instance_get_extension_data(instance, LV2_WORKER__interface));

  const std::uint32_t ports = lilv_plugin_get_num_ports(plugin);
  std::vector<float> defaults(ports);
  lilv_plugin_get_port_ranges_float(plugin, nullptr, nullptr, defaults.data());
  alignas(8) std::array<std::array<std::byte, 4096>, 2> events{};
  const auto is_a = [&](const LilvPort* port, const char* kind) {
    LilvNode* const node = lilv_new_uri(world, kind);
    const bool is = lilv_port_is_a(plugin, port, node);
    lilv_node_free(node);
    return is;
  };
  std::uint32_t in = ports, out = ports;
  for (std::uint32_t i = 0; i < ports; ++i) {
    const LilvPort* const port = lilv_plugin_get_port_by_index(plugin, i);
    const bool input = is_a(port, LV2_CORE__InputPort);
    if (is_a(port, LV2_CORE__AudioPort)) {
      (input ? in : out) = i;
    } else if (is_a(port, LV2_CORE__ControlPort)) {
      lilv_instance_connect_port(instance, i, &defaults[i]);
    } else {
      require(is_a(port, LV2_ATOM__AtomPort), "ports are of kinds that a host knows");
      lilv_instance_connect_port(instance, i, events[input ? 0 : 1].data());
    }
  }
  require(in < ports && out < ports, "there is an input and an output");

  lilv_instance_activate(instance);
  Values y(x.size());
  for (std::size_t at = 0; at < x.size(); at += kBlock) {
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(kBlock, x.size() - at));
    auto* const sequence = reinterpret_cast<LV2_Atom_Sequence*>(events[0].data());
    *sequence = {{sizeof(LV2_Atom_Sequence_Body), id(LV2_ATOM__Sequence)}, {0, 0}};
    auto* const answers = reinterpret_cast<LV2_Atom_Sequence*>(events[1].data());
    *answers = {{sizeof events[1] - sizeof(LV2_Atom), id(LV2_ATOM__Chunk)}, {0, 0}};
    lilv_instance_connect_port(instance, in, const_cast<float*>(&x[at]));
    lilv_instance_connect_port(instance, out, &y[at]);
    lilv_instance_run(instance, n);
  }
  require(y == expected, "the bits of the library's stream");
  lilv_instance_deactivate(instance);
  lilv_instance_free(instance);
  lilv_node_free(uri);
  lilv_node_free(bundle);
  lilv_world_free(world);
  std::puts("lv2_host: as expected");
}
