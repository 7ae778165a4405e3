"""VK: keys by the numbers that Windows gives them, and what X calls the same keys."""

from __future__ import annotations

from enum import IntEnum


class VK(IntEnum):
    """A key or a mouse button. A key that X has no name for is here, too, but cannot be pressed."""

    LBUTTON = 0x01
    RBUTTON = 0x02
    CANCEL = 0x03
    MBUTTON = 0x04
    XBUTTON1 = 0x05
    XBUTTON2 = 0x06
    BACK = 0x08
    TAB = 0x09
    CLEAR = 0x0C
    RETURN = 0x0D
    SHIFT = 0x10
    CONTROL = 0x11
    MENU = 0x12
    PAUSE = 0x13
    CAPITAL = 0x14
    KANA = 0x15
    HANGEUL = 0x15
    HANGUL = 0x15
    JUNJA = 0x17
    FINAL = 0x18
    KANJI = 0x19
    HANJA = 0x19
    ESCAPE = 0x1B
    CONVERT = 0x1C
    NONCONVERT = 0x1D
    ACCEPT = 0x1E
    MODECHANGE = 0x1F
    SPACE = 0x20
    PRIOR = 0x21
    NEXT = 0x22
    END = 0x23
    HOME = 0x24
    LEFT = 0x25
    UP = 0x26
    RIGHT = 0x27
    DOWN = 0x28
    SELECT = 0x29
    PRINT = 0x2A
    EXECUTE = 0x2B
    SNAPSHOT = 0x2C
    INSERT = 0x2D
    DELETE = 0x2E
    HELP = 0x2F
    KEY_0 = 0x30
    KEY_1 = 0x31
    KEY_2 = 0x32
    KEY_3 = 0x33
    KEY_4 = 0x34
    KEY_5 = 0x35
    KEY_6 = 0x36
    KEY_7 = 0x37
    KEY_8 = 0x38
    KEY_9 = 0x39
    KEY_A = 0x41
    KEY_B = 0x42
    KEY_C = 0x43
    KEY_D = 0x44
    KEY_E = 0x45
    KEY_F = 0x46
    KEY_G = 0x47
    KEY_H = 0x48
    KEY_I = 0x49
    KEY_J = 0x4A
    KEY_K = 0x4B
    KEY_L = 0x4C
    KEY_M = 0x4D
    KEY_N = 0x4E
    KEY_O = 0x4F
    KEY_P = 0x50
    KEY_Q = 0x51
    KEY_R = 0x52
    KEY_S = 0x53
    KEY_T = 0x54
    KEY_U = 0x55
    KEY_V = 0x56
    KEY_W = 0x57
    KEY_X = 0x58
    KEY_Y = 0x59
    KEY_Z = 0x5A
    LWIN = 0x5B
    RWIN = 0x5C
    APPS = 0x5D
    SLEEP = 0x5F
    NUMPAD0 = 0x60
    NUMPAD1 = 0x61
    NUMPAD2 = 0x62
    NUMPAD3 = 0x63
    NUMPAD4 = 0x64
    NUMPAD5 = 0x65
    NUMPAD6 = 0x66
    NUMPAD7 = 0x67
    NUMPAD8 = 0x68
    NUMPAD9 = 0x69
    MULTIPLY = 0x6A
    ADD = 0x6B
    SEPARATOR = 0x6C
    SUBTRACT = 0x6D
    DECIMAL = 0x6E
    DIVIDE = 0x6F
    F1 = 0x70
    F2 = 0x71
    F3 = 0x72
    F4 = 0x73
    F5 = 0x74
    F6 = 0x75
    F7 = 0x76
    F8 = 0x77
    F9 = 0x78
    F10 = 0x79
    F11 = 0x7A
    F12 = 0x7B
    F13 = 0x7C
    F14 = 0x7D
    F15 = 0x7E
    F16 = 0x7F
    F17 = 0x80
    F18 = 0x81
    F19 = 0x82
    F20 = 0x83
    F21 = 0x84
    F22 = 0x85
    F23 = 0x86
    F24 = 0x87
    NUMLOCK = 0x90
    SCROLL = 0x91
    OEM_NEC_EQUAL = 0x92
    OEM_FJ_JISHO = 0x92
    OEM_FJ_MASSHOU = 0x93
    OEM_FJ_TOUROKU = 0x94
    OEM_FJ_LOYA = 0x95
    OEM_FJ_ROYA = 0x96
    LSHIFT = 0xA0
    RSHIFT = 0xA1
    LCONTROL = 0xA2
    RCONTROL = 0xA3
    LMENU = 0xA4
    RMENU = 0xA5
    BROWSER_BACK = 0xA6
    BROWSER_FORWARD = 0xA7
    BROWSER_REFRESH = 0xA8
    BROWSER_STOP = 0xA9
    BROWSER_SEARCH = 0xAA
    BROWSER_FAVORITES = 0xAB
    BROWSER_HOME = 0xAC
    VOLUME_MUTE = 0xAD
    VOLUME_DOWN = 0xAE
    VOLUME_UP = 0xAF
    MEDIA_NEXT_TRACK = 0xB0
    MEDIA_PREV_TRACK = 0xB1
    MEDIA_STOP = 0xB2
    MEDIA_PLAY_PAUSE = 0xB3
    LAUNCH_MAIL = 0xB4
    LAUNCH_MEDIA_SELECT = 0xB5
    LAUNCH_APP1 = 0xB6
    LAUNCH_APP2 = 0xB7
    OEM_1 = 0xBA
    OEM_PLUS = 0xBB
    OEM_COMMA = 0xBC
    OEM_MINUS = 0xBD
    OEM_PERIOD = 0xBE
    OEM_2 = 0xBF
    OEM_3 = 0xC0
    OEM_4 = 0xDB
    OEM_5 = 0xDC
    OEM_6 = 0xDD
    OEM_7 = 0xDE
    OEM_8 = 0xDF
    OEM_AX = 0xE1
    OEM_102 = 0xE2
    ICO_HELP = 0xE3
    ICO_00 = 0xE4
    PROCESSKEY = 0xE5
    ICO_CLEAR = 0xE6
    PACKET = 0xE7
    OEM_RESET = 0xE9
    OEM_JUMP = 0xEA
    OEM_PA1 = 0xEB
    OEM_PA2 = 0xEC
    OEM_PA3 = 0xED
    OEM_WSCTRL = 0xEE
    OEM_CUSEL = 0xEF
    OEM_ATTN = 0xF0
    OEM_FINISH = 0xF1
    OEM_COPY = 0xF2
    OEM_AUTO = 0xF3
    OEM_ENLW = 0xF4
    OEM_BACKTAB = 0xF5
    ATTN = 0xF6
    CRSEL = 0xF7
    EXSEL = 0xF8
    EREOF = 0xF9
    PLAY = 0xFA
    ZOOM = 0xFB
    NONAME = 0xFC
    PA1 = 0xFD
    OEM_CLEAR = 0xFE


# Mouse buttons have a number among the keys, but no keysym.
KEYSYMS: dict[int, str] = {
    VK.CANCEL: "Cancel",
    VK.BACK: "BackSpace",
    VK.TAB: "Tab",
    VK.CLEAR: "Clear",
    VK.RETURN: "Return",
    VK.SHIFT: "Shift_L",
    VK.CONTROL: "Control_L",
    VK.MENU: "Alt_L",
    VK.PAUSE: "Pause",
    VK.CAPITAL: "Caps_Lock",
    VK.KANA: "Hangul",
    VK.JUNJA: "Hangul_Jeonja",
    VK.KANJI: "Hangul_Hanja",
    VK.ESCAPE: "Escape",
    VK.CONVERT: "Henkan_Mode",
    VK.NONCONVERT: "Muhenkan",
    VK.MODECHANGE: "Mode_switch",
    VK.SPACE: "space",
    VK.PRIOR: "Prior",
    VK.NEXT: "Next",
    VK.END: "End",
    VK.HOME: "Home",
    VK.LEFT: "Left",
    VK.UP: "Up",
    VK.RIGHT: "Right",
    VK.DOWN: "Down",
    VK.SELECT: "Select",
    VK.PRINT: "3270_PrintScreen",
    VK.EXECUTE: "Execute",
    VK.SNAPSHOT: "Print",
    VK.INSERT: "Insert",
    VK.DELETE: "Delete",
    VK.HELP: "Help",
    VK.LWIN: "Super_L",
    VK.RWIN: "Super_R",
    VK.APPS: "Menu",
    VK.SLEEP: "XF86_Sleep",
    VK.MULTIPLY: "KP_Multiply",
    VK.ADD: "KP_Add",
    VK.SEPARATOR: "KP_Separator",
    VK.SUBTRACT: "KP_Subtract",
    VK.DECIMAL: "KP_Decimal",
    VK.DIVIDE: "KP_Divide",
    VK.NUMLOCK: "Num_Lock",
    VK.SCROLL: "Scroll_Lock",
    VK.LSHIFT: "Shift_L",
    VK.RSHIFT: "Shift_R",
    VK.LCONTROL: "Control_L",
    VK.RCONTROL: "Control_R",
    VK.LMENU: "Alt_L",
    VK.RMENU: "Alt_R",
    VK.BROWSER_BACK: "XF86_Back",
    VK.BROWSER_FORWARD: "XF86_Forward",
    VK.BROWSER_REFRESH: "XF86_Refresh",
    VK.BROWSER_STOP: "XF86_Stop",
    VK.BROWSER_SEARCH: "XF86_Search",
    VK.BROWSER_FAVORITES: "XF86_Favorites",
    VK.BROWSER_HOME: "XF86_HomePage",
    VK.VOLUME_MUTE: "XF86_AudioMute",
    VK.VOLUME_DOWN: "XF86_AudioLowerVolume",
    VK.VOLUME_UP: "XF86_AudioRaiseVolume",
    VK.MEDIA_NEXT_TRACK: "XF86_AudioNext",
    VK.MEDIA_PREV_TRACK: "XF86_AudioPrev",
    VK.MEDIA_STOP: "XF86_AudioStop",
    VK.MEDIA_PLAY_PAUSE: "XF86_AudioPlay",
    VK.LAUNCH_MAIL: "XF86_Mail",
    VK.LAUNCH_MEDIA_SELECT: "XF86_AudioMedia",
    VK.LAUNCH_APP1: "XF86_MyComputer",
    VK.LAUNCH_APP2: "XF86_Calculator",
    VK.OEM_1: "semicolon",
    VK.OEM_PLUS: "equal",
    VK.OEM_COMMA: "comma",
    VK.OEM_MINUS: "minus",
    VK.OEM_PERIOD: "period",
    VK.OEM_2: "slash",
    VK.OEM_3: "grave",
    VK.OEM_4: "bracketleft",
    VK.OEM_5: "backslash",
    VK.OEM_6: "bracketright",
    VK.OEM_7: "apostrophe",
    VK.OEM_8: "section",
    VK.OEM_102: "less",
    VK.ATTN: "3270_Attn",
    VK.CRSEL: "3270_CursorSelect",
    VK.EXSEL: "3270_ExSelect",
    VK.EREOF: "3270_EraseEOF",
    VK.PLAY: "3270_Play",
    VK.ZOOM: "XF86_ZoomIn",
    VK.PA1: "3270_PA1",
    VK.OEM_CLEAR: "XF86_Clear",
    **{VK[f"KEY_{sign}"]: sign.lower() for sign in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
    **{VK[f"NUMPAD{digit}"]: f"KP_{digit}" for digit in range(10)},
    **{VK[f"F{number}"]: f"F{number}" for number in range(1, 25)},
}
# Buttons of a mouse, as X numbers them.
BUTTONS: dict[int, int] = {VK.LBUTTON: 1, VK.MBUTTON: 2, VK.RBUTTON: 3, VK.XBUTTON1: 8, VK.XBUTTON2: 9}
# A key that stands for either of two is, when it is pressed, the left one of them.
SIDES: dict[int, int] = {VK.SHIFT: VK.LSHIFT, VK.CONTROL: VK.LCONTROL, VK.MENU: VK.LMENU}
