#pragma once
/// What the plug-in framework has to know about the amplifier.
#define DISTRHO_PLUGIN_BRAND "Ferrite"
#define DISTRHO_PLUGIN_NAME "Ferrite Amp"
#define DISTRHO_PLUGIN_URI "urn:ferrite:amp"
#define DISTRHO_PLUGIN_CLAP_ID "ferrite.amp"
#define DISTRHO_PLUGIN_CLAP_FEATURES "audio-effect", "distortion", "mono"
#define DISTRHO_PLUGIN_LV2_CATEGORY "lv2:AmplifierPlugin"
#define DISTRHO_PLUGIN_VST3_CATEGORIES "Fx|Distortion|Mono"

#define DISTRHO_PLUGIN_HAS_UI 0
#define DISTRHO_PLUGIN_IS_RT_SAFE 1
#define DISTRHO_PLUGIN_NUM_INPUTS 1
#define DISTRHO_PLUGIN_NUM_OUTPUTS 1
#define DISTRHO_PLUGIN_WANT_LATENCY 1
#define DISTRHO_PLUGIN_WANT_STATE 1
#define DISTRHO_PLUGIN_WANT_FULL_STATE 1
